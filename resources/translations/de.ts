<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de">
<context>
    <name>workbench</name>
    <message>
        <source>&amp;File</source>
        <translation>&amp;Datei</translation>
    </message>
    <message>
        <source>&amp;Edit</source>
        <translation>&amp;Bearbeiten</translation>
    </message>
    <message>
        <source>&amp;Run</source>
        <translation>A&amp;usführen</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>&amp;Ansicht</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>&amp;Hilfe</translation>
    </message>
    <message>
        <source>&amp;Open Model File…</source>
        <translation>Modelldatei ö&amp;ffnen…</translation>
    </message>
    <message>
        <source>Open Model F&amp;older…</source>
        <translation>Modell&amp;ordner öffnen…</translation>
    </message>
    <message>
        <source>Open a Hugging Face folder or a sharded checkpoint</source>
        <translation>Einen Hugging-Face-Ordner oder einen geteilten Checkpoint öffnen</translation>
    </message>
    <message>
        <source>the table was closed before it was saved; open it and save it again</source>
        <translation>die Tabelle wurde geschlossen, bevor sie gespeichert war; öffnen und noch einmal speichern</translation>
    </message>
    <message>
        <source>Open &amp;Session…</source>
        <translation>S&amp;itzung öffnen…</translation>
    </message>
    <message>
        <source>Open a .qwb file</source>
        <translation>Eine .qwb-Datei öffnen</translation>
    </message>
    <message>
        <source>Open the &amp;Demo</source>
        <translation>&amp;Demo öffnen</translation>
    </message>
    <message>
        <source>Open the bundled language model</source>
        <translation>Das mitgelieferte Sprachmodell öffnen</translation>
    </message>
    <message>
        <source>&amp;Save</source>
        <translation>&amp;Speichern</translation>
    </message>
    <message>
        <source>Save the session; if that fails, the old file stays intact</source>
        <translation>Die Sitzung speichern; misslingt es, bleibt die alte Datei heil</translation>
    </message>
    <message>
        <source>Save &amp;As…</source>
        <translation>Speichern &amp;unter…</translation>
    </message>
    <message>
        <source>&amp;Export…</source>
        <translation>&amp;Exportieren…</translation>
    </message>
    <message>
        <source>Writes the plan, or the quantized model, for another program</source>
        <translation>Schreibt den Plan oder das quantisierte Modell für ein anderes Programm</translation>
    </message>
    <message>
        <source>Save a &amp;Report…</source>
        <translation>&amp;Bericht speichern…</translation>
    </message>
    <message>
        <source>Save every plot and table as one page to read and print</source>
        <translation>Alle Diagramme und Tabellen als eine Seite zum Lesen und Drucken speichern</translation>
    </message>
    <message>
        <source>Save the P&amp;icture…</source>
        <translation>Bi&amp;ld speichern…</translation>
    </message>
    <message>
        <source>Save the plot that has the keyboard focus as PNG or SVG</source>
        <translation>Das Diagramm mit dem Tastaturfokus als PNG oder SVG speichern</translation>
    </message>
    <message>
        <source>Save the &amp;Table…</source>
        <translation>&amp;Tabelle speichern…</translation>
    </message>
    <message>
        <source>Save the table that has the keyboard focus as comma-separated values</source>
        <translation>Die Tabelle mit dem Tastaturfokus als kommagetrennte Werte speichern</translation>
    </message>
    <message>
        <source>Co&amp;mpare with a Session…</source>
        <translation>&amp;Mit einer Sitzung vergleichen…</translation>
    </message>
    <message>
        <source>Show the open session and another side by side</source>
        <translation>Die offene Sitzung und eine andere nebeneinander zeigen</translation>
    </message>
    <message>
        <source>&amp;Close</source>
        <translation>S&amp;chließen</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>Bee&amp;nden</translation>
    </message>
    <message>
        <source>&amp;Undo</source>
        <translation>&amp;Rückgängig</translation>
    </message>
    <message>
        <source>&amp;Redo</source>
        <translation>&amp;Wiederholen</translation>
    </message>
    <message>
        <source>Set &amp;Scheme…</source>
        <translation>&amp;Schema setzen…</translation>
    </message>
    <message>
        <source>Choose a scheme for the selected layers</source>
        <translation>Ein Schema für die gewählten Schichten wählen</translation>
    </message>
    <message>
        <source>&amp;Fewer Bits</source>
        <translation>Weniger &amp;Bits</translation>
    </message>
    <message>
        <source>Give the selected layers the next smaller scheme</source>
        <translation>Den gewählten Schichten das nächstkleinere Schema geben</translation>
    </message>
    <message>
        <source>&amp;More Bits</source>
        <translation>&amp;Mehr Bits</translation>
    </message>
    <message>
        <source>Give the selected layers the next larger scheme</source>
        <translation>Den gewählten Schichten das nächstgrößere Schema geben</translation>
    </message>
    <message>
        <source>&amp;Keep in Floating Point</source>
        <translation>In &amp;Gleitkomma belassen</translation>
    </message>
    <message>
        <source>&amp;Lock or Unlock</source>
        <translation>S&amp;perren oder freigeben</translation>
    </message>
    <message>
        <source>A search leaves locked layers as they are</source>
        <translation>Eine Suche lässt gesperrte Schichten, wie sie sind</translation>
    </message>
    <message>
        <source>&amp;Repair for the Target</source>
        <translation>&amp;Für das Ziel reparieren</translation>
    </message>
    <message>
        <source>Give layers that the target cannot run the nearest scheme that it can</source>
        <translation>Schichten, die das Ziel nicht ausführen kann, das nächste ausführbare Schema geben</translation>
    </message>
    <message>
        <source>&amp;Next Decision</source>
        <translation>&amp;Nächste Entscheidung</translation>
    </message>
    <message>
        <source>Select the layer where more bits save most loss for each byte</source>
        <translation>Die Schicht wählen, in der mehr Bits je Byte den meisten Verlust sparen</translation>
    </message>
    <message>
        <source>Select &amp;All Layers</source>
        <translation>&amp;Alle Schichten wählen</translation>
    </message>
    <message>
        <source>Select Si&amp;milar Layers</source>
        <translation>Ä&amp;hnliche Schichten wählen</translation>
    </message>
    <message>
        <source>Select the layers of the same kind, shape and last name</source>
        <translation>Die Schichten gleicher Art, Form und Endung wählen</translation>
    </message>
    <message>
        <source>&amp;Columns…</source>
        <translation>Spa&amp;lten…</translation>
    </message>
    <message>
        <source>Choose the columns of the layers</source>
        <translation>Die Spalten der Schichten wählen</translation>
    </message>
    <message>
        <source>F&amp;ilter Layers</source>
        <translation>S&amp;chichten filtern</translation>
    </message>
    <message>
        <source>&amp;Calibrate…</source>
        <translation>&amp;Kalibrieren…</translation>
    </message>
    <message>
        <source>Runs the model on a data set and notes, for every layer, histograms of its inputs and outputs, ranges by every method, and the curvature that the predicted loss needs</source>
        <translation>Rechnet das Modell auf Daten und merkt sich je Schicht Histogramme der Ein- und Ausgänge, Bereiche jeder Methode und die Krümmung für den vorhergesagten Verlust</translation>
    </message>
    <message>
        <source>&amp;Sensitivity…</source>
        <translation>&amp;Empfindlichkeit…</translation>
    </message>
    <message>
        <source>Quantizes each layer alone with each scheme and scores the damage</source>
        <translation>Quantisiert jede Schicht einzeln mit jedem Schema und bewertet den Schaden</translation>
    </message>
    <message>
        <source>Refine Close &amp;Decisions…</source>
        <translation>Knappe Entschei&amp;dungen messen…</translation>
    </message>
    <message>
        <source>Measures the loss of the cells whose choice the prediction leaves open at this size, the closest decision first</source>
        <translation>Misst den Verlust der Zellen, deren Wahl die Vorhersage bei dieser Größe offenlässt, die knappste zuerst</translation>
    </message>
    <message>
        <source>Search a &amp;Plan</source>
        <translation>&amp;Plan suchen</translation>
    </message>
    <message>
        <source>Finds the plan of the least predicted loss within the budget</source>
        <translation>Findet den Plan mit dem kleinsten vorhergesagten Verlust im Budget</translation>
    </message>
    <message>
        <source>&amp;Evaluate…</source>
        <translation>Aus&amp;werten…</translation>
    </message>
    <message>
        <source>Runs the quantized model beside the floating-point model on held-out data</source>
        <translation>Rechnet das quantisierte Modell neben dem in Gleitkomma auf zurückgehaltenen Daten</translation>
    </message>
    <message>
        <source>A&amp;udit the Plan…</source>
        <translation>Plan prü&amp;fen…</translation>
    </message>
    <message>
        <source>Measures the loss of each of the plan's layers quantized alone, of all together, and of all but one: whether the losses add up, and which layers make each other's worse</source>
        <translation>Misst den Verlust jeder Schicht allein, aller zusammen und aller bis auf eine: ob sich die Verluste addieren und welche Schichten einander verschlimmern</translation>
    </message>
    <message>
        <source>Trai&amp;n…</source>
        <translation>Trai&amp;nieren…</translation>
    </message>
    <message>
        <source>Trains new weights on the grids of the plan's schemes, from the floating-point model, and writes them</source>
        <translation>Trainiert neue Gewichte auf den Gittern des Plans, ausgehend vom Gleitkommamodell, und schreibt sie</translation>
    </message>
    <message>
        <source>&amp;Time the Kernels…</source>
        <translation>Kernel &amp;messen…</translation>
    </message>
    <message>
        <source>Times the kernels that serve the plan's schemes beside the floating-point ones, on this machine</source>
        <translation>Misst die Kernel für die Schemata des Plans neben denen in Gleitkomma auf diesem Rechner</translation>
    </message>
    <message>
        <source>Run A&amp;ll</source>
        <translation>A&amp;lles ausführen</translation>
    </message>
    <message>
        <source>Calibrate, score, search within the budget and evaluate: what is not done yet</source>
        <translation>Kalibrieren, bewerten, im Budget suchen und auswerten: was noch nicht getan ist</translation>
    </message>
    <message>
        <source>De&amp;vice…</source>
        <translation>&amp;Gerät…</translation>
    </message>
    <message>
        <source>Choose where models run and what they compute in</source>
        <translation>Wählen, wo Modelle laufen und womit sie rechnen</translation>
    </message>
    <message>
        <source>C&amp;ancel the Job</source>
        <translation>Auftrag a&amp;bbrechen</translation>
    </message>
    <message>
        <source>&amp;Retry the Last Job</source>
        <translation>Letzten Auftrag wiede&amp;rholen</translation>
    </message>
    <message>
        <source>Co&amp;mmands…</source>
        <translation>&amp;Befehle…</translation>
    </message>
    <message>
        <source>Find any command, panel, layer, scheme, plan, metric, target or word of the guide</source>
        <translation>Befehle, Ansichten, Schichten, Schemata, Pläne, Maße, Ziele oder Wörter des Handbuchs finden</translation>
    </message>
    <message>
        <source>Copy the Last Job as P&amp;ython</source>
        <translation>Letzten Auftrag als P&amp;ython kopieren</translation>
    </message>
    <message>
        <source>Copy a script that repeats the job</source>
        <translation>Ein Skript kopieren, das den Auftrag wiederholt</translation>
    </message>
    <message>
        <source>&amp;Light or Dark</source>
        <translation>He&amp;ll oder dunkel</translation>
    </message>
    <message>
        <source>&amp;Colours of the System</source>
        <translation>Farben des S&amp;ystems</translation>
    </message>
    <message>
        <source>Follow the light or dark colours of the desktop</source>
        <translation>Den hellen oder dunklen Farben des Desktops folgen</translation>
    </message>
    <message>
        <source>&amp;Heatmap Colours</source>
        <translation>Farben der &amp;Heatmaps</translation>
    </message>
    <message>
        <source>Viridis, cividis or grey: all can be told apart by colour-blind people</source>
        <translation>Viridis, cividis oder grau: alle sind bei Farbenblindheit unterscheidbar</translation>
    </message>
    <message>
        <source>Layout: Explore</source>
        <translation>Anordnung: Erkunden</translation>
    </message>
    <message>
        <source>Arrange the panels for this work</source>
        <translation>Die Ansichten für diese Arbeit anordnen</translation>
    </message>
    <message>
        <source>Layout: Plan</source>
        <translation>Anordnung: Planen</translation>
    </message>
    <message>
        <source>Layout: Compare</source>
        <translation>Anordnung: Vergleichen</translation>
    </message>
    <message>
        <source>Layout: Deploy</source>
        <translation>Anordnung: Ausliefern</translation>
    </message>
    <message>
        <source>&amp;Reset the Layout</source>
        <translation>Anordnung zu&amp;rücksetzen</translation>
    </message>
    <message>
        <source>User &amp;Guide</source>
        <translation>&amp;Handbuch</translation>
    </message>
    <message>
        <source>Explanations of all panels and steps</source>
        <translation>Erklärungen aller Ansichten und Schritte</translation>
    </message>
    <message>
        <source>&amp;Tour of the Demo</source>
        <translation>&amp;Rundgang durch die Demo</translation>
    </message>
    <message>
        <source>A short text beside each panel</source>
        <translation>Ein kurzer Text neben jeder Ansicht</translation>
    </message>
    <message>
        <source>Show &amp;Log</source>
        <translation>&amp;Protokoll zeigen</translation>
    </message>
    <message>
        <source>Open the folder of the log files, for a bug report</source>
        <translation>Den Ordner der Protokolle öffnen, für einen Fehlerbericht</translation>
    </message>
    <message>
        <source>&amp;About</source>
        <translation>&amp;Über</translation>
    </message>
    <message>
        <source>Versions and devices</source>
        <translation>Versionen und Geräte</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>Schichten</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>Plan</translation>
    </message>
    <message>
        <source>Sensitivity</source>
        <translation>Empfindlichkeit</translation>
    </message>
    <message>
        <source>No scores yet.

Compute the sensitivity (F6) by weight error. Other metrics run the network, but {}.</source>
        <translation>Noch keine Bewertung.

Die Empfindlichkeit (F6) nach dem Gewichtsfehler berechnen. Andere Maße lassen das Netz laufen, aber {}.</translation>
    </message>
    <message>
        <source>{} (new)</source>
        <translation>{} (neu)</translation>
    </message>
    <message>
        <source>Pareto front</source>
        <translation>Paretofront</translation>
    </message>
    <message>
        <source>Accuracy</source>
        <translation>Genauigkeit</translation>
    </message>
    <message>
        <source>Agreement</source>
        <translation>Übereinstimmung</translation>
    </message>
    <message>
        <source>Error budget</source>
        <translation>Fehlerbudget</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>Vergleich</translation>
    </message>
    <message>
        <source>Distributions</source>
        <translation>Verteilungen</translation>
    </message>
    <message>
        <source>Channels</source>
        <translation>Kanäle</translation>
    </message>
    <message>
        <source>Calibration data</source>
        <translation>Kalibrierdaten</translation>
    </message>
    <message>
        <source>Timing</source>
        <translation>Zeiten</translation>
    </message>
    <message>
        <source>Reconstruction</source>
        <translation>Rekonstruktion</translation>
    </message>
    <message>
        <source>Deploy</source>
        <translation>Ausliefern</translation>
    </message>
    <message>
        <source>Jobs</source>
        <translation>Aufträge</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Calibrate</source>
        <translation>Kalibrieren</translation>
    </message>
    <message>
        <source>Score</source>
        <translation>Bewerten</translation>
    </message>
    <message>
        <source>Evaluate</source>
        <translation>Auswerten</translation>
    </message>
    <message>
        <source>A language model for llama.cpp</source>
        <translation>Ein Sprachmodell für llama.cpp</translation>
    </message>
    <message>
        <source>K-quants and other GGUF blocks, 4.5 bits per weight, exported as one .gguf file</source>
        <translation>K-Quants und andere GGUF-Blöcke, 4,5 Bits je Gewicht, exportiert als eine .gguf-Datei</translation>
    </message>
    <message>
        <source>A language model for vLLM</source>
        <translation>Ein Sprachmodell für vLLM</translation>
    </message>
    <message>
        <source>Integers, FP8 and NVFP4 as compressed-tensors, 4.5 bits per weight</source>
        <translation>Ganzzahlen, FP8 und NVFP4 als compressed-tensors, 4,5 Bits je Gewicht</translation>
    </message>
    <message>
        <source>INT8 for ONNX Runtime</source>
        <translation>INT8 für ONNX Runtime</translation>
    </message>
    <message>
        <source>8-bit weights and inputs in one .onnx file</source>
        <translation>8-Bit-Gewichte und -Eingaben in einer .onnx-Datei</translation>
    </message>
    <message>
        <source>Explore</source>
        <translation>Erkunden</translation>
    </message>
    <message>
        <source>Every scheme, no target</source>
        <translation>Jedes Schema, kein Ziel</translation>
    </message>
    <message>
        <source>&amp;Report a Problem…</source>
        <translation>Ein Problem &amp;melden…</translation>
    </message>
    <message>
        <source>Drag to select channels; drag the region or its ends to move it. Arrow keys move it, with Shift its end</source>
        <translation>Ziehen wählt Kanäle; den Bereich oder seine Enden ziehen, um ihn zu verschieben. Pfeiltasten verschieben ihn, mit Umschalt sein Ende</translation>
    </message>
    <message>
        <source>GOP/s</source>
        <translation>GOP/s</translation>
    </message>
    <message>
        <source>How far ranges move as samples are added</source>
        <translation>Wie weit sich Bereiche mit mehr Beispielen bewegen</translation>
    </message>
    <message>
        <source>How much of the evaluation data is covered</source>
        <translation>Wie viel der Auswertungsdaten abgedeckt ist</translation>
    </message>
    <message>
        <source>Kernel times, floating point and quantized</source>
        <translation>Kernelzeiten, Gleitkomma und quantisiert</translation>
    </message>
    <message>
        <source>Least and greatest value of every channel</source>
        <translation>Kleinster und größter Wert jedes Kanals</translation>
    </message>
    <message>
        <source>Roofline of the timed kernels</source>
        <translation>Roofline der gemessenen Kernel</translation>
    </message>
    <message>
        <source>Signal to noise along the depth</source>
        <translation>Signal zu Rauschen entlang der Tiefe</translation>
    </message>
    <message>
        <source>Size or time of the plans against predicted loss</source>
        <translation>Größe oder Zeit der Pläne gegen den vorhergesagten Verlust</translation>
    </message>
    <message>
        <source>Time over batch size</source>
        <translation>Zeit über der Batchgröße</translation>
    </message>
    <message>
        <source>Timed at one batch size only; Sweep Batch Sizes times the kernels at several</source>
        <translation>Nur bei einer Batchgröße gemessen; „Batchgrößen durchlaufen“ misst bei mehreren</translation>
    </message>
    <message>
        <source>Two metrics of the same cells against each other</source>
        <translation>Zwei Maße derselben Zellen gegeneinander</translation>
    </message>
    <message>
        <source>batch size (rows of inputs)</source>
        <translation>Batchgröße (Zeilen von Eingaben)</translation>
    </message>
    <message>
        <source>block</source>
        <translation>Block</translation>
    </message>
    <message>
        <source>channel</source>
        <translation>Kanal</translation>
    </message>
    <message>
        <source>class (left bar: calibration, right: evaluation)</source>
        <translation>Klasse (linker Balken: Kalibrierung, rechter: Auswertung)</translation>
    </message>
    <message>
        <source>commonest ids of the calibration data; covered: share of the evaluation's tokens</source>
        <translation>häufigste Nummern der Kalibrierdaten; abgedeckt: Anteil der Token der Auswertung</translation>
    </message>
    <message>
        <source>count</source>
        <translation>Anzahl</translation>
    </message>
    <message>
        <source>count (log)</source>
        <translation>Anzahl (log)</translation>
    </message>
    <message>
        <source>covered (%)</source>
        <translation>abgedeckt (%)</translation>
    </message>
    <message>
        <source>loss</source>
        <translation>Verlust</translation>
    </message>
    <message>
        <source>moved (%)</source>
        <translation>bewegt (%)</translation>
    </message>
    <message>
        <source>operations a byte</source>
        <translation>Operationen je Byte</translation>
    </message>
    <message>
        <source>samples</source>
        <translation>Beispiele</translation>
    </message>
    <message>
        <source>samples (%)</source>
        <translation>Beispiele (%)</translation>
    </message>
    <message>
        <source>signal to noise (dB)</source>
        <translation>Signal zu Rauschen (dB)</translation>
    </message>
    <message>
        <source>size in MB</source>
        <translation>Größe in MB</translation>
    </message>
    <message>
        <source>value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>x</source>
        <translation>x</translation>
    </message>
    <message>
        <source>y</source>
        <translation>y</translation>
    </message>
    <message>
        <source>µs</source>
        <translation>µs</translation>
    </message>
    <message>
        <source>nats</source>
        <translation>nats</translation>
    </message>
    <message>
        <source>weight</source>
        <translation>Gewicht</translation>
    </message>
    <message>
        <source>input</source>
        <translation>Eingabe</translation>
    </message>
    <message>
        <source>output</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>; it scores the schemes that the target runs</source>
        <translation>; sie bewertet die Schemata, die das Ziel ausführt</translation>
    </message>
    <message>
        <source>A .qwb file with all earlier results</source>
        <translation>Eine .qwb-Datei mit allen früheren Ergebnissen</translation>
    </message>
    <message>
        <source>A function of the file builds the network. Its weights come from the file that you give, from one beside it (weights.safetensors, model.pt, ...), or from the function itself.</source>
        <translation>Eine Funktion der Datei baut das Netz. Seine Gewichte kommen aus der angegebenen Datei, aus einer daneben (weights.safetensors, model.pt, ...) oder aus der Funktion selbst.</translation>
    </message>
    <message>
        <source>A small language model with data; opens in seconds</source>
        <translation>Ein kleines Sprachmodell mit Daten; öffnet in Sekunden</translation>
    </message>
    <message>
        <source>By block</source>
        <translation>Nach Block</translation>
    </message>
    <message>
        <source>By kind</source>
        <translation>Nach Art</translation>
    </message>
    <message>
        <source>By loss</source>
        <translation>Nach Verlust</translation>
    </message>
    <message>
        <source>By loss per byte saved</source>
        <translation>Nach Verlust je gespartem Byte</translation>
    </message>
    <message>
        <source>By depth</source>
        <translation>Nach Tiefe</translation>
    </message>
    <message>
        <source>Calibrate, score, search a plan and evaluate it now; the tour begins again on the results</source>
        <translation>Jetzt kalibrieren, bewerten, einen Plan suchen und auswerten; der Rundgang beginnt danach mit den Ergebnissen</translation>
    </message>
    <message>
        <source>Calibrate…</source>
        <translation>Kalibrieren…</translation>
    </message>
    <message>
        <source>Compute Sensitivity…</source>
        <translation>Empfindlichkeit berechnen…</translation>
    </message>
    <message>
        <source>Cop&amp;y the Numbers</source>
        <translation>&amp;Zahlen kopieren</translation>
    </message>
    <message>
        <source>Copies the commands that profile the selected CUDA kernels (all, if none is selected)</source>
        <translation>Kopiert die Befehle, die die gewählten CUDA-Kernel profilieren (alle, wenn keiner gewählt ist)</translation>
    </message>
    <message>
        <source>Copy the plot that has the keyboard focus as a picture</source>
        <translation>Das Diagramm mit dem Tastaturfokus als Bild kopieren</translation>
    </message>
    <message>
        <source>Copy the table, heatmap or plot that has the keyboard focus as plain numbers</source>
        <translation>Tabelle, Heatmap oder Diagramm mit dem Tastaturfokus als reine Zahlen kopieren</translation>
    </message>
    <message>
        <source>Down: how the model stores weights. Across: how the plan stores them. Layers and bytes</source>
        <translation>Nach unten: wie das Modell Gewichte speichert. Nach rechts: wie der Plan sie speichert. Schichten und Bytes</translation>
    </message>
    <message>
        <source>Enter a path</source>
        <translation>Einen Pfad eingeben</translation>
    </message>
    <message>
        <source>Enter a text</source>
        <translation>Einen Text eingeben</translation>
    </message>
    <message>
        <source>Evaluate a plan (F8) to see it beside the floating-point model.

Audit a plan (Ctrl+Shift+F8) to see whether the losses of its layers add up.</source>
        <translation>Einen Plan auswerten (F8), um ihn neben dem Gleitkommamodell zu sehen.

Einen Plan prüfen (Strg+Umschalt+F8), um zu sehen, ob sich die Verluste seiner Schichten addieren.</translation>
    </message>
    <message>
        <source>Evaluate…</source>
        <translation>Auswerten…</translation>
    </message>
    <message>
        <source>Filter: words, kind:linear, scheme:int4, re:…, worst 10</source>
        <translation>Filter: Wörter, kind:linear, scheme:int4, re:…, worst 10</translation>
    </message>
    <message>
        <source>Find in the guide (Enter for the next match)</source>
        <translation>Im Handbuch suchen (Enter: nächster Treffer)</translation>
    </message>
    <message>
        <source>Frame the cells of both plans in the heatmap where they differ, and list the changes in the tree</source>
        <translation>Die Zellen beider Pläne in der Heatmap rahmen, wo sie sich unterscheiden, und die Änderungen im Baum aufführen</translation>
    </message>
    <message>
        <source>Give each of them the nearest scheme that the target runs</source>
        <translation>Jeder das nächstliegende Schema geben, das das Ziel ausführt</translation>
    </message>
    <message>
        <source>Go to the panel {}</source>
        <translation>Zur Ansicht {} gehen</translation>
    </message>
    <message>
        <source>Measure memory and arithmetic in the same run as the kernels at several batch sizes</source>
        <translation>Speicher und Rechenwerk im selben Lauf messen wie die Kernel bei mehreren Batchgrößen</translation>
    </message>
    <message>
        <source>Measure the loss in nats where the predicted losses leave the scheme open (Ctrl+F6)</source>
        <translation>Den Verlust in nats messen, wo die vorhergesagten Verluste das Schema offen lassen (Strg+F6)</translation>
    </message>
    <message>
        <source>Measure whether the losses of the plan's layers add up (Ctrl+Shift+F8)</source>
        <translation>Messen, ob sich die Verluste der Schichten des Plans addieren (Strg+Umschalt+F8)</translation>
    </message>
    <message>
        <source>Name for the current plan</source>
        <translation>Name für den aktuellen Plan</translation>
    </message>
    <message>
        <source>New rule for: a name, model.layers.*.mlp.*, or re: and an expression</source>
        <translation>Neue Regel für: einen Namen, model.layers.*.mlp.* oder re: und einen Ausdruck</translation>
    </message>
    <message>
        <source>No audit yet: Audit measures the loss of each quantized layer alone, of all together, and of all but one. Score the predicted KL (F6) first to have the prediction beside it.</source>
        <translation>Noch keine Prüfung: Sie misst den Verlust jeder quantisierten Schicht allein, aller zusammen und aller bis auf eine. Zuerst die vorhergesagte KL bewerten (F6), um die Vorhersage daneben zu haben.</translation>
    </message>
    <message>
        <source>Only where the most likely answer became another one</source>
        <translation>Nur wo die wahrscheinlichste Antwort eine andere wurde</translation>
    </message>
    <message>
        <source>Open a &amp;model…</source>
        <translation>&amp;Modell öffnen…</translation>
    </message>
    <message>
        <source>Open a &amp;session…</source>
        <translation>&amp;Sitzung öffnen…</translation>
    </message>
    <message>
        <source>Open the &amp;demo</source>
        <translation>&amp;Demo öffnen</translation>
    </message>
    <message>
        <source>Read a .qwb file to compare the open session with; neither is changed</source>
        <translation>Eine .qwb-Datei zum Vergleich mit der offenen Sitzung lesen; keine wird geändert</translation>
    </message>
    <message>
        <source>Read what happened, and save it as one archive to send</source>
        <translation>Lesen, was geschah, und es als ein Archiv zum Senden speichern</translation>
    </message>
    <message>
        <source>Recent</source>
        <translation>Zuletzt</translation>
    </message>
    <message>
        <source>Resample the same samples of both: a 95 % interval of their difference</source>
        <translation>Dieselben Beispiele beider neu ziehen: ein 95-%-Intervall ihres Unterschieds</translation>
    </message>
    <message>
        <source>Run the floating-point and the quantized model on a few calibration samples</source>
        <translation>Gleitkomma- und quantisiertes Modell auf einigen Kalibrierbeispielen ausführen</translation>
    </message>
    <message>
        <source>Run the model on growing parts of the calibration data, then on the evaluation data</source>
        <translation>Das Modell auf wachsenden Teilen der Kalibrierdaten ausführen, dann auf den Auswertungsdaten</translation>
    </message>
    <message>
        <source>Save the report</source>
        <translation>Bericht speichern</translation>
    </message>
    <message>
        <source>Search a Plan</source>
        <translation>Plan suchen</translation>
    </message>
    <message>
        <source>Slide along the front: the plan follows; letting go is one step to undo</source>
        <translation>An der Front entlanggleiten: der Plan folgt; Loslassen ist ein Schritt zum Rückgängigmachen</translation>
    </message>
    <message>
        <source>Sum of the losses of all layers; lower is better.</source>
        <translation>Summe der Verluste aller Schichten; kleiner ist besser.</translation>
    </message>
    <message>
        <source>The next job loads the model there. A session can be calibrated on one device and used on another.</source>
        <translation>Der nächste Auftrag lädt das Modell dort. Eine Sitzung kann auf einem Gerät kalibriert und auf einem anderen verwendet werden.</translation>
    </message>
    <message>
        <source>The outputs of the floating-point model stay the same; rounding then costs less. Carried out when the plan is evaluated or exported, from top to bottom.</source>
        <translation>Die Ausgaben des Gleitkommamodells bleiben gleich; das Runden kostet dann weniger. Ausgeführt, wenn der Plan ausgewertet oder exportiert wird, von oben nach unten.</translation>
    </message>
    <message>
        <source>Time the Kernels…</source>
        <translation>Kernelzeiten messen…</translation>
    </message>
    <message>
        <source>Type a command, panel, layer, scheme, plan, metric, target or word of the guide</source>
        <translation>Befehl, Ansicht, Schicht, Schema, Plan, Maß, Ziel oder Wort des Handbuchs eingeben</translation>
    </message>
    <message>
        <source>Use the smallest budget</source>
        <translation>Kleinstes Budget verwenden</translation>
    </message>
    <message>
        <source>What is wrong with {}</source>
        <translation>Was an {} falsch ist</translation>
    </message>
    <message>
        <source>What the new rule gives the weights of the layers that it matches</source>
        <translation>Was die neue Regel den Gewichten der passenden Schichten gibt</translation>
    </message>
    <message>
        <source>Zoom and pan all three plots together, in parts of each one's own width</source>
        <translation>Alle drei Diagramme gemeinsam zoomen und verschieben, in Teilen der Breite jedes einzelnen</translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation>Modell öffnen</translation>
    </message>
    <message>
        <source>Open a session</source>
        <translation>Eine Sitzung öffnen</translation>
    </message>
    <message>
        <source>Browse samples</source>
        <translation>Beispiele ansehen</translation>
    </message>
    <message>
        <source>Check the calibration data</source>
        <translation>Kalibrierdaten prüfen</translation>
    </message>
    <message>
        <source>Search a plan</source>
        <translation>Plan suchen</translation>
    </message>
    <message>
        <source>Explain the plan</source>
        <translation>Plan erklären</translation>
    </message>
    <message>
        <source>Best plan of every size</source>
        <translation>Bester Plan jeder Größe</translation>
    </message>
    <message>
        <source>Compare two evaluations</source>
        <translation>Zwei Auswertungen vergleichen</translation>
    </message>
    <message>
        <source>Before and after</source>
        <translation>Vorher und nachher</translation>
    </message>
    <message>
        <source>Time the kernels</source>
        <translation>Kernelzeiten messen</translation>
    </message>
    <message>
        <source>Time the candidates of a search</source>
        <translation>Kandidaten einer Suche messen</translation>
    </message>
    <message>
        <source>Sweep batch sizes</source>
        <translation>Batchgrößen durchlaufen</translation>
    </message>
    <message>
        <source>Train</source>
        <translation>Trainieren</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>Run in a runtime</source>
        <translation>In einer Laufzeit ausführen</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Ausführen</translation>
    </message>
    <message>
        <source>Run &amp;in a Runtime…</source>
        <translation>In einer Lauf&amp;zeit ausführen…</translation>
    </message>
    <message>
        <source>Runs the plan's file in the runtime that it is for: its answers beside the evaluation, speed, memory</source>
        <translation>Führt die Datei des Plans in der Laufzeit aus, für die sie ist: ihre Antworten neben der Auswertung, Tempo, Speicher</translation>
    </message>
    <message>
        <source>The program that runs the exported file</source>
        <translation>Das Programm, das die exportierte Datei ausführt</translation>
    </message>
    <message>
        <source>Run the model as it is in the same runtime, as a row beside the plan</source>
        <translation>Das Modell, wie es ist, in derselben Laufzeit ausführen, als Zeile neben dem Plan</translation>
    </message>
    <message>
        <source>The exported file to run; it must hold what the plan says, bit for bit</source>
        <translation>Die exportierte Datei, die ausgeführt wird; sie muss Bit für Bit enthalten, was der Plan sagt</translation>
    </message>
    <message>
        <source>one is written by the plan, and removed</source>
        <translation>eine wird nach dem Plan geschrieben und wieder entfernt</translation>
    </message>
    <message>
        <source>Tokens of each sample after which the whole distribution of the next one is compared</source>
        <translation>Token jedes Beispiels, nach denen die ganze Verteilung des nächsten verglichen wird</translation>
    </message>
    <message>
        <source>Threads of the runtime</source>
        <translation>Threads der Laufzeit</translation>
    </message>
    <message>
        <source>List the devices</source>
        <translation>Geräte auflisten</translation>
    </message>
    <message>
        <source>Find the devices</source>
        <translation>Geräte suchen</translation>
    </message>
    <message>
        <source>Keep a recovery copy</source>
        <translation>Sicherungskopie behalten</translation>
    </message>
    <message>
        <source>Runs the model on a data set and notes, for every layer, histograms of its inputs and outputs, ranges by every method, and the curvature that the predicted loss needs.</source>
        <translation>Führt das Modell auf einem Datensatz aus und hält für jede Schicht Histogramme ihrer Ein- und Ausgaben, Bereiche nach jedem Verfahren und die Krümmung fest, die der vorhergesagte Verlust braucht.</translation>
    </message>
    <message>
        <source>a text file, a table (.jsonl, .csv, .parquet, .arrow), a folder of texts, images or sounds, an array file (.npz, .npy, .pt, .safetensors) or a bundled set (demo:language-model)</source>
        <translation>eine Textdatei, eine Tabelle (.jsonl, .csv, .parquet, .arrow), ein Ordner mit Texten, Bildern oder Tönen, eine Array-Datei (.npz, .npy, .pt, .safetensors) oder ein mitgelieferter Satz (demo:language-model)</translation>
    </message>
    <message>
        <source>a text file, a table (.jsonl, .csv, .parquet), a folder of images or sounds, or an array file (.npz, .npy)</source>
        <translation>eine Textdatei, eine Tabelle (.jsonl, .csv, .parquet), ein Ordner mit Bildern oder Tönen oder eine Array-Datei (.npz, .npy)</translation>
    </message>
    <message>
        <source>the model's bundled data</source>
        <translation>die mitgelieferten Daten des Modells</translation>
    </message>
    <message>
        <source>how many samples of the data are used; more take longer and narrow the intervals</source>
        <translation>wie viele Beispiele der Daten verwendet werden; mehr dauern länger und machen die Intervalle enger</translation>
    </message>
    <message>
        <source>all</source>
        <translation>alle</translation>
    </message>
    <message>
        <source>Batch size</source>
        <translation>Batchgröße</translation>
    </message>
    <message>
        <source>samples that run through the model at once</source>
        <translation>Beispiele, die zugleich durch das Modell laufen</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Startwert</translation>
    </message>
    <message>
        <source>seed of every random choice: same seed, data and plan, same numbers</source>
        <translation>Startwert jeder zufälligen Wahl: gleicher Startwert, gleiche Daten und gleicher Plan, gleiche Zahlen</translation>
    </message>
    <message>
        <source>Column</source>
        <translation>Spalte</translation>
    </message>
    <message>
        <source>the column of a table to read; by commas two texts of a pair, or texts and their label or score</source>
        <translation>die Spalte einer Tabelle; mit Kommas zwei Texte eines Paars oder Texte und ihre Klasse oder Bewertung</translation>
    </message>
    <message>
        <source>a column with a usual name, such as text or messages</source>
        <translation>eine Spalte mit üblichem Namen wie text oder messages</translation>
    </message>
    <message>
        <source>tokens of a window of running text, the most of a sentence, points of a frame of sound</source>
        <translation>Token eines Fensters laufenden Textes, höchstens eines Satzes, Punkte eines Tonrahmens</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Importance matrix</source>
        <translation>Importance-Matrix</translation>
    </message>
    <message>
        <source>llama.cpp's importance matrix (.gguf or .dat) to take the inputs' mean squares from; needs no data</source>
        <translation>Importance-Matrix von llama.cpp (.gguf oder .dat), aus der die mittleren Quadrate der Eingaben stammen; braucht keine Daten</translation>
    </message>
    <message>
        <source>none: the inputs are those of the data</source>
        <translation>keine: die Eingaben sind die der Daten</translation>
    </message>
    <message>
        <source>the range method {} needs gradients at inputs, and this calibration has none; calibrate again, or leave the range method out</source>
        <translation>Die Bereichsmethode {} braucht Gradienten an Eingaben, und diese Kalibrierung hat keine; noch einmal kalibrieren oder die Bereichsmethode weglassen</translation>
    </message>
    <message>
        <source>All tokens through all experts</source>
        <translation>Alle Token durch alle Experten</translation>
    </message>
    <message>
        <source>Lets every expert of a mixture see all tokens, not only those that its router sends; the outputs stay as they are, and a run takes as much longer as there are experts for each one that is chosen.</source>
        <translation>Lässt jeden Experten einer Mischung alle Token sehen, nicht nur die, die sein Router schickt; die Ausgaben bleiben, und ein Lauf dauert so viel länger, wie es Experten je gewähltem gibt.</translation>
    </message>
    <message>
        <source>Quantizes each layer alone with each scheme and scores the damage. Predictions need a calibration; measuring runs the model for every cell and takes much longer. What rounding inputs costs adds to the plan's totals.</source>
        <translation>Quantisiert jede Schicht allein mit jedem Schema und bewertet den Schaden. Vorhersagen brauchen eine Kalibrierung; Messungen führen das Modell für jede Zelle aus und dauern viel länger. Was das Runden der Eingaben kostet, kommt zu den Summen des Plans.</translation>
    </message>
    <message>
        <source>what is computed for each layer and scheme; higher is worse. ..._inputs and ..._cache score activation schemes: of each layer's input, or of the keys or values that it gives the KV cache</source>
        <translation>was für jede Schicht und jedes Schema berechnet wird; größer ist schlechter. ..._inputs und ..._cache bewerten Aktivierungsschemata: der Eingabe jeder Schicht oder der Keys oder Values, die sie dem KV-Cache gibt</translation>
    </message>
    <message>
        <source>Schemes</source>
        <translation>Schemata</translation>
    </message>
    <message>
        <source>the columns of the table</source>
        <translation>die Spalten der Tabelle</translation>
    </message>
    <message>
        <source>a dozen, or those that the target runs; for activations int8-, int6-, int4- and fp8-e4m3-token</source>
        <translation>ein Dutzend oder die, die das Ziel ausführt; für Aktivierungen int8-, int6-, int4- und fp8-e4m3-token</translation>
    </message>
    <message>
        <source>Measures the loss of the cells whose choice the prediction leaves open at this size, the closest decision first. A cancelled run keeps what it has measured; the same run started again goes on from there. A table measured on other samples is replaced.</source>
        <translation>Misst den Verlust der Zellen, deren Wahl die Vorhersage bei dieser Größe offen lässt, die knappste Entscheidung zuerst. Ein abgebrochener Lauf behält, was er gemessen hat; derselbe Lauf macht beim nächsten Start dort weiter. Eine Tabelle von anderen Beispielen wird ersetzt.</translation>
    </message>
    <message>
        <source>mean bits of the quantizable weights</source>
        <translation>mittlere Bits der quantisierbaren Gewichte</translation>
    </message>
    <message>
        <source>bits per weight</source>
        <translation>Bits je Gewicht</translation>
    </message>
    <message>
        <source>Relative error</source>
        <translation>Relativer Fehler</translation>
    </message>
    <message>
        <source>relative error of a predicted loss that a decision must withstand not to be measured; more measures more cells</source>
        <translation>relativer Fehler eines vorhergesagten Verlusts, den eine Entscheidung aushalten muss, um nicht gemessen zu werden; mehr misst mehr Zellen</translation>
    </message>
    <message>
        <source>Runs the quantized model beside the floating-point model on held-out data.</source>
        <translation>Führt das quantisierte Modell neben dem Gleitkommamodell auf zurückgehaltenen Daten aus.</translation>
    </message>
    <message>
        <source>the evaluation data that belong to the calibration data, disjoint from them</source>
        <translation>die Auswertungsdaten, die zu den Kalibrierdaten gehören, ohne Überschneidung</translation>
    </message>
    <message>
        <source>Stride</source>
        <translation>Schrittweite</translation>
    </message>
    <message>
        <source>tokens from one window to the next; perplexity then scores each token once, with the context before it</source>
        <translation>Token von einem Fenster zum nächsten; die Perplexität bewertet dann jedes Token einmal, mit dem Kontext davor</translation>
    </message>
    <message>
        <source>the window: none overlap</source>
        <translation>das Fenster: keine Überlappung</translation>
    </message>
    <message>
        <source>Measures the loss of each of the plan's layers quantized alone, of all together, and of all but one: whether the losses add up, and which layers make each other's worse. Takes two runs over the data for each layer.</source>
        <translation>Misst den Verlust jeder Schicht des Plans allein quantisiert, aller zusammen und aller bis auf eine: ob sich die Verluste addieren und welche Schichten einander verschlimmern. Braucht zwei Läufe über die Daten je Schicht.</translation>
    </message>
    <message>
        <source>Trains new weights on the grids of the plan's schemes, from the floating-point model, and writes them. The run is saved now and then, and when it is cancelled: Retry goes on from there. The model itself stays as it is.</source>
        <translation>Trainiert neue Gewichte auf den Gittern der Schemata des Plans, ausgehend vom Gleitkommamodell, und schreibt sie. Der Lauf wird ab und zu und beim Abbrechen gespeichert: Wiederholen macht dort weiter. Das Modell selbst bleibt, wie es ist.</translation>
    </message>
    <message>
        <source>the calibration data</source>
        <translation>die Kalibrierdaten</translation>
    </message>
    <message>
        <source>Passes over the data</source>
        <translation>Durchgänge durch die Daten</translation>
    </message>
    <message>
        <source>how often all samples are seen; 0: the number of steps below counts</source>
        <translation>wie oft alle Beispiele gesehen werden; 0: es gilt die Zahl der Schritte darunter</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>how often the weights are changed</source>
        <translation>wie oft die Gewichte geändert werden</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>Lernrate</translation>
    </message>
    <message>
        <source>the most that a weight moves in the first step, in steps of its grid; it falls to 0 with a cosine</source>
        <translation>wie weit sich ein Gewicht im ersten Schritt höchstens bewegt, in Schritten seines Gitters; fällt mit einem Kosinus auf 0</translation>
    </message>
    <message>
        <source>Minimise</source>
        <translation>Minimieren</translation>
    </message>
    <message>
        <source>what to minimise: KL to the floating-point model in nats, or cross-entropy to the data's labels</source>
        <translation>was minimiert wird: KL zum Gleitkommamodell in nats oder Kreuzentropie zu den Klassen der Daten</translation>
    </message>
    <message>
        <source>4 texts, 64 images</source>
        <translation>4 Texte, 64 Bilder</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>the form to write</source>
        <translation>die Form, die geschrieben wird</translation>
    </message>
    <message>
        <source>the file or folder to write</source>
        <translation>die Datei oder der Ordner, der geschrieben wird</translation>
    </message>
    <message>
        <source>Times the kernels that serve the plan's schemes beside the floating-point ones, on this machine.</source>
        <translation>Misst auf diesem Rechner die Zeiten der Kernel für die Schemata des Plans neben denen der Gleitkommakernel.</translation>
    </message>
    <message>
        <source>rows of the input</source>
        <translation>Zeilen der Eingabe</translation>
    </message>
    <message>
        <source>Repeats</source>
        <translation>Wiederholungen</translation>
    </message>
    <message>
        <source>timed runs of each kernel</source>
        <translation>gemessene Läufe jedes Kernels</translation>
    </message>
    <message>
        <source>Writes the plan, or the quantized model, for another program.</source>
        <translation>Schreibt den Plan oder das quantisierte Modell für ein anderes Programm.</translation>
    </message>
    <message>
        <source>Finds the plan of the least predicted loss within the budget.</source>
        <translation>Findet den Plan mit dem kleinsten vorhergesagten Verlust im Budget.</translation>
    </message>
    <message>
        <source>Predicted KL</source>
        <translation>Vorhergesagte KL</translation>
    </message>
    <message>
        <source>Second-order prediction of the KL that quantizing this weight alone causes; needs a calibration</source>
        <translation>Vorhersage zweiter Ordnung der KL, die die Quantisierung dieses Gewichts allein verursacht; braucht eine Kalibrierung</translation>
    </message>
    <message>
        <source>½ Σ g·a·D², or ½ E⟨∇, D⟩² where positions are correlated; D: rounding error, a and g: mean squares of inputs and output gradients (K-FAC, Martens &amp; Grosse 2015)</source>
        <translation>½ Σ g·a·D², oder ½ E⟨∇, D⟩², wo Positionen zusammenhängen; D: Rundungsfehler, a und g: mittlere Quadrate von Eingaben und Ausgangsgradienten (K-FAC, Martens &amp; Grosse 2015)</translation>
    </message>
    <message>
        <source>Measured KL</source>
        <translation>Gemessene KL</translation>
    </message>
    <message>
        <source>KL to the floating-point model with this weight alone quantized; one run of the model for each cell</source>
        <translation>KL zum Gleitkommamodell, wenn nur dieses Gewicht quantisiert ist; ein Lauf des Modells je Zelle</translation>
    </message>
    <message>
        <source>mean of Σ p·(ln p − ln q) over tokens or samples; p: floating point, q: with this weight rounded</source>
        <translation>Mittel von Σ p·(ln p − ln q) über Token oder Beispiele; p: Gleitkomma, q: mit diesem Gewicht gerundet</translation>
    </message>
    <message>
        <source>Layer-output error</source>
        <translation>Fehler der Schichtausgabe</translation>
    </message>
    <message>
        <source>Squared error of the layer's own output over its squared size</source>
        <translation>Quadrierter Fehler der eigenen Ausgabe der Schicht durch ihre quadrierte Größe</translation>
    </message>
    <message>
        <source>Σ |D·x|² / Σ |W·x|²; D: rounding error, W: weight, x: the layer&apos;s inputs</source>
        <translation>Σ |D·x|² / Σ |W·x|²; D: Rundungsfehler, W: Gewicht, x: Eingaben der Schicht</translation>
    </message>
    <message>
        <source>Weight error</source>
        <translation>Gewichtsfehler</translation>
    </message>
    <message>
        <source>Squared error of the weight over its squared size; needs neither data nor a calibration</source>
        <translation>Quadrierter Fehler des Gewichts durch seine quadrierte Größe; braucht weder Daten noch Kalibrierung</translation>
    </message>
    <message>
        <source>Σ D² / Σ W²; D: rounding error, W: weight</source>
        <translation>Σ D² / Σ W²; D: Rundungsfehler, W: Gewicht</translation>
    </message>
    <message>
        <source>Hessian trace (HAWQ)</source>
        <translation>Spur der Hesse-Matrix (HAWQ)</translation>
    </message>
    <message>
        <source>Average Hessian trace of the layer times the squared error of its weight, as in HAWQ-V2; needs a calibration</source>
        <translation>Mittlere Spur der Hesse-Matrix der Schicht mal dem quadrierten Fehler ihres Gewichts, wie in HAWQ-V2; braucht eine Kalibrierung</translation>
    </message>
    <message>
        <source>½ mean(g)·mean(a)·Σ D²; a and g: mean squares of inputs and output gradients (Dong et al. 2020)</source>
        <translation>½ Mittel(g)·Mittel(a)·Σ D²; a und g: mittlere Quadrate von Eingaben und Ausgangsgradienten (Dong et al. 2020)</translation>
    </message>
    <message>
        <source>Refined KL</source>
        <translation>Verfeinerte KL</translation>
    </message>
    <message>
        <source>The predicted losses with measured ones in place where decisions are close, the others corrected by them</source>
        <translation>Die vorhergesagten Verluste, durch gemessene ersetzt, wo Entscheidungen knapp sind, die anderen daran berichtigt</translation>
    </message>
    <message>
        <source>the measurement, else the prediction times the factor of the measured cells near it</source>
        <translation>die Messung, sonst die Vorhersage mal dem Faktor der gemessenen Zellen in ihrer Nähe</translation>
    </message>
    <message>
        <source>Predicted KL of inputs</source>
        <translation>Vorhergesagte KL der Eingaben</translation>
    </message>
    <message>
        <source>Prediction, from output gradients, of the KL that quantizing this layer's input alone causes</source>
        <translation>Vorhersage aus Gradienten der Ausgaben: die KL, die die Quantisierung der Eingabe dieser Schicht allein verursacht</translation>
    </message>
    <message>
        <source>½ mean of Σ g²·(q(x) − x)²; x: the layer&apos;s inputs, q: rounding, g: gradients there</source>
        <translation>½ Mittel von Σ g²·(q(x) − x)²; x: Eingaben der Schicht, q: Rundung, g: Gradienten dort</translation>
    </message>
    <message>
        <source>Measured KL of inputs</source>
        <translation>Gemessene KL der Eingaben</translation>
    </message>
    <message>
        <source>KL to the floating-point model with this layer's input alone quantized; one run for each cell</source>
        <translation>KL zum Gleitkommamodell, wenn nur die Eingabe dieser Schicht quantisiert ist; ein Lauf je Zelle</translation>
    </message>
    <message>
        <source>mean of Σ p·(ln p − ln q) over tokens or samples; p: floating point, q: with this input rounded</source>
        <translation>Mittel von Σ p·(ln p − ln q) über Token oder Beispiele; p: Gleitkomma, q: mit dieser Eingabe gerundet</translation>
    </message>
    <message>
        <source>Predicted KL of the KV cache</source>
        <translation>Vorhergesagte KL des KV-Caches</translation>
    </message>
    <message>
        <source>Prediction of the KL that quantizing the keys or values of this layer alone in the KV cache causes</source>
        <translation>Vorhersage der KL, die die Quantisierung der Keys oder Values dieser Schicht allein im KV-Cache verursacht</translation>
    </message>
    <message>
        <source>½ mean of Σ g²·(q(x) − x)²; x: keys or values, q: rounding, g: gradients there</source>
        <translation>½ Mittel von Σ g²·(q(x) − x)²; x: Keys oder Values, q: Rundung, g: Gradienten dort</translation>
    </message>
    <message>
        <source>Measured KL of the KV cache</source>
        <translation>Gemessene KL des KV-Caches</translation>
    </message>
    <message>
        <source>KL with the keys or values of this layer alone quantized in the KV cache; one run for each cell</source>
        <translation>KL, wenn nur die Keys oder Values dieser Schicht im KV-Cache quantisiert sind; ein Lauf je Zelle</translation>
    </message>
    <message>
        <source>mean of Σ p·(ln p − ln q) over tokens or samples; p: floating point, q: with these keys or values rounded</source>
        <translation>Mittel von Σ p·(ln p − ln q) über Token oder Beispiele; p: Gleitkomma, q: mit diesen Keys oder Values gerundet</translation>
    </message>
    <message>
        <source>Predicted distance</source>
        <translation>Vorhergesagter Abstand</translation>
    </message>
    <message>
        <source>Measured distance</source>
        <translation>Gemessener Abstand</translation>
    </message>
    <message>
        <source>Predicted KL (nats)</source>
        <translation>Vorhergesagte KL (nats)</translation>
    </message>
    <message>
        <source>Measured KL (nats)</source>
        <translation>Gemessene KL (nats)</translation>
    </message>
    <message>
        <source>Predicted distance (½ d²)</source>
        <translation>Vorhergesagter Abstand (½ d²)</translation>
    </message>
    <message>
        <source>Measured distance (½ d²)</source>
        <translation>Gemessener Abstand (½ d²)</translation>
    </message>
    <message>
        <source>not scored</source>
        <translation>nicht bewertet</translation>
    </message>
    <message>
        <source>not evaluated</source>
        <translation>nicht ausgewertet</translation>
    </message>
    <message>
        <source>not timed</source>
        <translation>nicht gemessen</translation>
    </message>
    <message>
        <source>same size</source>
        <translation>gleich groß</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
    </message>
    <message>
        <source>floating point</source>
        <translation>Gleitkomma</translation>
    </message>
    <message>
        <source>&amp;Weights</source>
        <translation>&amp;Gewichte</translation>
    </message>
    <message>
        <source>&amp;Inputs</source>
        <translation>&amp;Eingaben</translation>
    </message>
    <message>
        <source>Al&amp;gorithm</source>
        <translation>Algo&amp;rithmus</translation>
    </message>
    <message>
        <source>Ra&amp;nge</source>
        <translation>Berei&amp;ch</translation>
    </message>
    <message>
        <source>Loc&amp;ked</source>
        <translation>Ges&amp;perrt</translation>
    </message>
    <message>
        <source>any runtime</source>
        <translation>jede Laufzeit</translation>
    </message>
    <message>
        <source>runs the whole plan</source>
        <translation>führt den ganzen Plan aus</translation>
    </message>
    <message>
        <source>every scheme is allowed</source>
        <translation>jedes Schema ist erlaubt</translation>
    </message>
    <message>
        <source>not this model</source>
        <translation>nicht dieses Modell</translation>
    </message>
    <message>
        <source>This plan has not run in its runtime yet</source>
        <translation>Dieser Plan lief noch nicht in seiner Laufzeit</translation>
    </message>
    <message>
        <source>MB of the whole model</source>
        <translation>MB des ganzen Modells</translation>
    </message>
    <message>
        <source>predicted loss</source>
        <translation>vorhergesagter Verlust</translation>
    </message>
    <message>
        <source>µs of kernels</source>
        <translation>µs der Kernel</translation>
    </message>
    <message>
        <source>The next stage: click to start it</source>
        <translation>Der nächste Schritt: klicken, um ihn zu starten</translation>
    </message>
    <message>
        <source>Nothing to undo</source>
        <translation>Nichts rückgängig zu machen</translation>
    </message>
    <message>
        <source>Nothing to redo</source>
        <translation>Nichts wiederherzustellen</translation>
    </message>
    <message>
        <source>No job is running</source>
        <translation>Kein Auftrag läuft</translation>
    </message>
    <message>
        <source>Wait until the running jobs have ended</source>
        <translation>Warten, bis die laufenden Aufträge beendet sind</translation>
    </message>
    <message>
        <source>No job has failed</source>
        <translation>Kein Auftrag ist gescheitert</translation>
    </message>
    <message>
        <source>Select layers first</source>
        <translation>Zuerst Schichten wählen</translation>
    </message>
    <message>
        <source>Choose a target in the Plan panel first</source>
        <translation>Zuerst in der Ansicht Plan ein Ziel wählen</translation>
    </message>
    <message>
        <source>Compute the sensitivity first</source>
        <translation>Zuerst die Empfindlichkeit berechnen</translation>
    </message>
    <message>
        <source>Worst first</source>
        <translation>Schlechteste zuerst</translation>
    </message>
    <message>
        <source>One layer</source>
        <translation>Eine Schicht</translation>
    </message>
    <message>
        <source>Overlay</source>
        <translation>Übereinander</translation>
    </message>
    <message>
        <source>Small multiples</source>
        <translation>Kleine Diagramme</translation>
    </message>
    <message>
        <source>The outliers</source>
        <translation>Die Ausreißer</translation>
    </message>
    <message>
        <source>Needed: {}</source>
        <translation>Nötig: {}</translation>
    </message>
    <message>
        <source>{:,} of {:,} chosen</source>
        <translation>{:,} von {:,} gewählt</translation>
    </message>
    <message>
        <source>Not now: {}</source>
        <translation>Nicht jetzt: {}</translation>
    </message>
    <message>
        <source>Not yet: {}</source>
        <translation>Noch nicht: {}</translation>
    </message>
    <message>
        <source>Dropped: {}</source>
        <translation>Verworfen: {}</translation>
    </message>
    <message>
        <source>Cancelled: {}</source>
        <translation>Abgebrochen: {}</translation>
    </message>
    <message>
        <source>Opened {}</source>
        <translation>{} geöffnet</translation>
    </message>
    <message>
        <source>Saved {}</source>
        <translation>{} gespeichert</translation>
    </message>
    <message>
        <source>Opened the plan {}</source>
        <translation>Plan {} geöffnet</translation>
    </message>
    <message>
        <source>Save the changes to {}?</source>
        <translation>Änderungen an {} speichern?</translation>
    </message>
    <message>
        <source>Replace {}?</source>
        <translation>{} ersetzen?</translation>
    </message>
    <message>
        <source>Device: {}</source>
        <translation>Gerät: {}</translation>
    </message>
    <message>
        <source>&amp;Replace</source>
        <translation>&amp;Ersetzen</translation>
    </message>
    <message>
        <source>&amp;Run the File</source>
        <translation>Die Datei &amp;ausführen</translation>
    </message>
    <message>
        <source>&amp;Repair</source>
        <translation>&amp;Reparieren</translation>
    </message>
    <message>
        <source>{} not now</source>
        <translation>{} nicht jetzt</translation>
    </message>
    <message>
        <source>{w}: not now</source>
        <translation>{w}: nicht jetzt</translation>
    </message>
    <message>
        <source>{} of the selected layers</source>
        <translation>{} der gewählten Schichten</translation>
    </message>
    <message>
        <source>Scheme of the weights</source>
        <translation>Schema der Gewichte</translation>
    </message>
    <message>
        <source>Scheme of the inputs</source>
        <translation>Schema der Eingaben</translation>
    </message>
    <message>
        <source>Rounding algorithm</source>
        <translation>Rundungsalgorithmus</translation>
    </message>
    <message>
        <source>Range method for static inputs</source>
        <translation>Bereichsverfahren für statische Eingaben</translation>
    </message>
    <message>
        <source>{:,} layers</source>
        <translation>{:,} Schichten</translation>
    </message>
    <message>
        <source>Wrote {} to {}</source>
        <translation>{} nach {} geschrieben</translation>
    </message>
    <message>
        <source>; load it with {}</source>
        <translation>; laden mit {}</translation>
    </message>
    <message>
        <source>&amp;Use {:g}</source>
        <translation>{:g} &amp;verwenden</translation>
    </message>
    <message>
        <source>Opening this model runs the Python file

{}

with all your permissions. Run it only if you wrote it or have read it.</source>
        <translation>Beim Öffnen dieses Modells wird die Python-Datei

{}

mit all Ihren Rechten ausgeführt. Führen Sie sie nur aus, wenn Sie sie geschrieben oder gelesen haben.</translation>
    </message>
    <message>
        <source>{w} could not be written to {}: {w}; what was there before is untouched. Make room or choose another place, and try again</source>
        <translation>{w}: Schreiben nach {} gelang nicht: {w}; was dort vorher stand, ist unverändert. Platz schaffen oder einen anderen Ort wählen und es noch einmal versuchen</translation>
    </message>
    <message>
        <source>{w} could not be written to {}: {w}; what was there before is untouched. Choose another place, or correct that, and try again</source>
        <translation>{w}: Schreiben nach {} gelang nicht: {w}; was dort vorher stand, ist unverändert. Einen anderen Ort wählen oder das beheben und es noch einmal versuchen</translation>
    </message>
    <message>
        <source>the disk is full ({} are free)</source>
        <translation>die Platte ist voll ({} sind frei)</translation>
    </message>
    <message>
        <source>the disk is full</source>
        <translation>die Platte ist voll</translation>
    </message>
    <message>
        <source>the disk quota is used up</source>
        <translation>das Kontingent auf der Platte ist aufgebraucht</translation>
    </message>
    <message>
        <source>the file is too large</source>
        <translation>die Datei ist zu groß</translation>
    </message>
    <message>
        <source>Read-only file system</source>
        <translation>das Dateisystem lässt sich nur lesen</translation>
    </message>
    <message>
        <source>Permission denied</source>
        <translation>keine Erlaubnis</translation>
    </message>
    <message>
        <source>the session</source>
        <translation>die Sitzung</translation>
    </message>
    <message>
        <source>the checkpoint</source>
        <translation>der Zwischenstand</translation>
    </message>
    <message>
        <source>{w} cannot be written to {}: the folder is read-only; choose another or allow it</source>
        <translation>{w}: Schreiben nach {} geht nicht: der Ordner lässt sich nur lesen; einen anderen wählen oder es erlauben</translation>
    </message>
    <message>
        <source>{w} cannot be written to {}: the file is read-only; choose another name or allow it</source>
        <translation>{w}: Schreiben nach {} geht nicht: die Datei lässt sich nur lesen; einen anderen Namen wählen oder es erlauben</translation>
    </message>
    <message>
        <source>{} is being written by {}; wait for it and try again</source>
        <translation>{} wird von {} geschrieben; darauf warten und es noch einmal versuchen</translation>
    </message>
    <message>
        <source>Choose the target {}</source>
        <translation>Ziel {} wählen</translation>
    </message>
    <message>
        <source>Allow any target</source>
        <translation>Jedes Ziel erlauben</translation>
    </message>
    <message>
        <source>Lock {w}</source>
        <translation>{w} sperren</translation>
    </message>
    <message>
        <source>Unlock {w}</source>
        <translation>{w} entsperren</translation>
    </message>
    <message>
        <source>Fewer bits for {w}</source>
        <translation>Weniger Bits für {w}</translation>
    </message>
    <message>
        <source>More bits for {w}</source>
        <translation>Mehr Bits für {w}</translation>
    </message>
    <message>
        <source>Repair {w} for {}</source>
        <translation>{w} für {} reparieren</translation>
    </message>
    <message>
        <source>Set {w} to {}</source>
        <translation>{w} auf {} setzen</translation>
    </message>
    <message>
        <source>Set {w} to inputs {}</source>
        <translation>Eingaben von {w} auf {} setzen</translation>
    </message>
    <message>
        <source>Set {w} to floating-point inputs</source>
        <translation>Eingaben von {w} auf Gleitkomma setzen</translation>
    </message>
    <message>
        <source>Set {w} to keep FP</source>
        <translation>{w} in Gleitkomma lassen</translation>
    </message>
    <message>
        <source>Set {w} to cache {}</source>
        <translation>Cache von {w} auf {} setzen</translation>
    </message>
    <message>
        <source>Set {w} to floating-point cache</source>
        <translation>Cache von {w} auf Gleitkomma setzen</translation>
    </message>
    <message>
        <source>Set the input range of {} ({w})</source>
        <translation>Bereich der Eingaben von {} setzen ({w})</translation>
    </message>
    <message>
        <source>Set the weight range of {} ({w})</source>
        <translation>Bereich der Gewichte von {} setzen ({w})</translation>
    </message>
    <message>
        <source>Set the output range of {} ({w})</source>
        <translation>Bereich der Ausgaben von {} setzen ({w})</translation>
    </message>
    <message>
        <source>Paint {w}</source>
        <translation>Malen: {w}</translation>
    </message>
    <message>
        <source>Paint the inputs of {w}</source>
        <translation>Malen: Eingaben von {w}</translation>
    </message>
    <message>
        <source>Paint the keys and values of {w}</source>
        <translation>Malen: Keys und Values von {w}</translation>
    </message>
    <message>
        <source>Edit the plan as text</source>
        <translation>Plan als Text bearbeiten</translation>
    </message>
    <message>
        <source>Edits during loading</source>
        <translation>Änderungen während des Ladens</translation>
    </message>
    <message>
        <source>Open the plan {}</source>
        <translation>Plan {} öffnen</translation>
    </message>
    <message>
        <source>Search within {w}</source>
        <translation>Suche innerhalb von {w}</translation>
    </message>
    <message>
        <source>Recovered Edits</source>
        <translation>Wiederhergestellte Änderungen</translation>
    </message>
    <message>
        <source>A search leaves out {w}, {n} % of the weights</source>
        <translation>Eine Suche lässt {w} aus, {n} % der Gewichte</translation>
    </message>
    <message>
        <source>{w} (embedding) stays in floating point</source>
        <translation>{w} (Einbettung) bleibt in Gleitkomma</translation>
    </message>
    <message>
        <source>{w} (embedding) stays {}</source>
        <translation>{w} (Einbettung) bleibt {}</translation>
    </message>
    <message>
        <source>{w} stays in floating point</source>
        <translation>{w} bleibt in Gleitkomma</translation>
    </message>
    <message>
        <source>for {w}</source>
        <translation>für {w}</translation>
    </message>
    <message>
        <source>locked</source>
        <translation>gesperrt</translation>
    </message>
    <message>
        <source>size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Estimate for {} at batch {}, by its data sheet and not measured: {} against {} as stored, {}×.</source>
        <translation>Schätzung für {} bei Batch {}, nach dem Datenblatt und nicht gemessen: {} gegen {} wie gespeichert, {}×.</translation>
    </message>
    <message>
        <source>Estimate for {} at batch {}, by its data sheet and not measured: {} against {} as stored, {}×</source>
        <translation>Schätzung für {} bei Batch {}, nach dem Datenblatt und nicht gemessen: {} gegen {} wie gespeichert, {}×</translation>
    </message>
    <message>
        <source>{}: {} to {} saves {w} for {}</source>
        <translation>{}: von {} auf {} spart {w} für {}</translation>
    </message>
    <message>
        <source>{n} of {n}, most loss saved for each byte first</source>
        <translation>{n} von {n}, am meisten gesparter Verlust je Byte zuerst</translation>
    </message>
    <message>
        <source>affine groups</source>
        <translation>affine Gruppen</translation>
    </message>
    <message>
        <source>Sum of the losses of all layers; lower is better. It includes {w}. {w} have no scores yet; score them to include them.</source>
        <translation>Summe der Verluste aller Schichten; kleiner ist besser. Sie enthält {w}. {w} haben noch keine Werte; sie bewerten, um sie einzubeziehen.</translation>
    </message>
    <message>
        <source>The rounded inputs of {w}</source>
        <translation>Die gerundeten Eingaben von {w}</translation>
    </message>
    <message>
        <source>The rounded keys and values of {w}</source>
        <translation>Die gerundeten Keys und Values von {w}</translation>
    </message>
    <message>
        <source>The workbench was not closed properly</source>
        <translation>Die Workbench wurde nicht ordentlich beendet</translation>
    </message>
    <message>
        <source>There is a copy of the session of {}, written on {}</source>
        <translation>Es gibt eine Kopie der Sitzung {}, geschrieben am {}</translation>
    </message>
    <message>
        <source>There is a copy of the session that was never saved, written on {}</source>
        <translation>Es gibt eine Kopie der Sitzung, die nie gespeichert wurde, geschrieben am {}</translation>
    </message>
    <message>
        <source>There is a copy of the session of {}, written on {}. Another window or program has changed that file since: saving asks which to keep.</source>
        <translation>Es gibt eine Kopie der Sitzung {}, geschrieben am {}. Ein anderes Fenster oder Programm hat diese Datei seither geändert; beim Speichern wird gefragt, was bleiben soll.</translation>
    </message>
    <message>
        <source>another window or program has changed {} since it was read; choose another name, or replace it</source>
        <translation>ein anderes Fenster oder Programm hat {} geändert, seit die Datei gelesen wurde; einen anderen Namen wählen oder sie ersetzen</translation>
    </message>
    <message>
        <source>Another window or program has changed {} since it was opened here. Saving overwrites those changes; under another name, both are kept.</source>
        <translation>Ein anderes Fenster oder Programm hat {} geändert, seit die Datei hier geöffnet wurde. Speichern überschreibt diese Änderungen; unter einem anderen Namen bleibt beides erhalten.</translation>
    </message>
    <message>
        <source>Open a model to see the weights of every layer and the cost of every number format, and to build a mixed-precision plan. You can also drop a file or folder here.</source>
        <translation>Ein Modell öffnen, um die Gewichte jeder Schicht und die Kosten jedes Zahlenformats zu sehen und einen Plan gemischter Genauigkeit zu bauen. Eine Datei oder ein Ordner lässt sich auch hierher ziehen.</translation>
    </message>
    <message>
        <source>Internal error of the workbench</source>
        <translation>Interner Fehler der Workbench</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>Öffnen</translation>
    </message>
    <message>
        <source>Repaired</source>
        <translation>Repariert</translation>
    </message>
    <message>
        <source>Nothing to save yet</source>
        <translation>Noch nichts zu speichern</translation>
    </message>
    <message>
        <source>The plan cannot be opened</source>
        <translation>Der Plan lässt sich nicht öffnen</translation>
    </message>
    <message>
        <source>Repair the session?</source>
        <translation>Sitzung reparieren?</translation>
    </message>
    <message>
        <source>{}. A repair opens the undamaged parts as a new session, lists what is lost, and does not change the file.</source>
        <translation>{}. Eine Reparatur öffnet die unbeschädigten Teile als neue Sitzung, nennt, was verloren ist, und ändert die Datei nicht.</translation>
    </message>
    <message>
        <source>Edits during loading are lost</source>
        <translation>Änderungen während des Ladens sind verloren</translation>
    </message>
    <message>
        <source>Save the session</source>
        <translation>Sitzung speichern</translation>
    </message>
    <message>
        <source>No layer can be improved</source>
        <translation>Keine Schicht lässt sich verbessern</translation>
    </message>
    <message>
        <source>No unlocked layer loses less with a larger scheme.</source>
        <translation>Keine nicht gesperrte Schicht verliert mit einem größeren Schema weniger.</translation>
    </message>
    <message>
        <source>Close while a job is running?</source>
        <translation>Schließen, während ein Auftrag läuft?</translation>
    </message>
    <message>
        <source>The jobs in the background have ended</source>
        <translation>Die Aufträge im Hintergrund sind beendet</translation>
    </message>
    <message>
        <source>Copied the picture</source>
        <translation>Bild kopiert</translation>
    </message>
    <message>
        <source>Copied the numbers</source>
        <translation>Zahlen kopiert</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Verwenden</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>Cluster</translation>
    </message>
    <message>
        <source>other processes that calibrations and tables of losses use: local:4 for four processes of this machine, tcp://host:8786 for a Dask scheduler</source>
        <translation>andere Prozesse, die Kalibrierungen und Verlusttabellen mitberechnen: local:4 für vier Prozesse dieses Rechners, tcp://host:8786 für einen Dask-Scheduler</translation>
    </message>
    <message>
        <source>how much memory the work may take, such as 2GB: the rest is read from the model's file, or written to disk</source>
        <translation>wie viel die Arbeit belegen darf, etwa 2GB: was darüber hinausgeht, wird aus der Modelldatei gelesen oder auf der Platte abgelegt</translation>
    </message>
    <message>
        <source>what is free</source>
        <translation>was frei ist</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>'{}' is not the address of a cluster; give that of a Dask scheduler, such as tcp://host:8786, or local:4 for four processes of this machine</source>
        <translation>'{}' ist keine Adresse eines Clusters; die eines Dask-Schedulers angeben, etwa tcp://host:8786, oder local:4 für vier Prozesse dieses Rechners</translation>
    </message>
    <message>
        <source>'{}': give a number of processes from {n} to {n}, such as local:4</source>
        <translation>'{}': eine Zahl von Prozessen von {n} bis {n} angeben, etwa local:4</translation>
    </message>
    <message>
        <source>'{}' is not a size; write a number and a unit, such as 120MB, 2GB or 1.5GiB</source>
        <translation>'{}' ist keine Größe; eine Zahl und eine Einheit schreiben, etwa 120MB, 2GB oder 1.5GiB</translation>
    </message>
    <message>
        <source>Compute</source>
        <translation>Berechnen</translation>
    </message>
    <message>
        <source>Measure</source>
        <translation>Messen</translation>
    </message>
    <message>
        <source>Close decisions are measured</source>
        <translation>Knappe Entscheidungen sind gemessen</translation>
    </message>
    <message>
        <source>choose Refined KL in Sensitivity to use them</source>
        <translation>unter Empfindlichkeit „Refined KL“ wählen, um sie zu verwenden</translation>
    </message>
    <message>
        <source>Audit</source>
        <translation>Prüfen</translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation>&amp;Weiter</translation>
    </message>
    <message>
        <source>&amp;Fill the Panels</source>
        <translation>Ansichten &amp;füllen</translation>
    </message>
    <message>
        <source>&amp;Done</source>
        <translation>&amp;Fertig</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Zurück</translation>
    </message>
    <message>
        <source>&amp;Skip the Tour</source>
        <translation>Rundgang ü&amp;berspringen</translation>
    </message>
    <message>
        <source>Colours of heatmaps</source>
        <translation>Farben der Heatmaps</translation>
    </message>
    <message>
        <source>The log files are in</source>
        <translation>Die Protokolldateien liegen in</translation>
    </message>
    <message>
        <source>The report was saved</source>
        <translation>Der Bericht wurde gespeichert</translation>
    </message>
    <message>
        <source>another model was opened in the meantime</source>
        <translation>inzwischen wurde ein anderes Modell geöffnet</translation>
    </message>
    <message>
        <source>&amp;Clear</source>
        <translation>&amp;Leeren</translation>
    </message>
    <message>
        <source>Nothing yet</source>
        <translation>Noch nichts</translation>
    </message>
    <message>
        <source>Layer</source>
        <translation>Schicht</translation>
    </message>
    <message>
        <source>Interaction</source>
        <translation>Wechselwirkung</translation>
    </message>
    <message>
        <source>Added last minus alone: above 0 where the layer's error makes the others' worse</source>
        <translation>Zuletzt hinzugefügt minus allein: über 0, wo der Fehler der Schicht die der anderen verschlimmert</translation>
    </message>
    <message>
        <source>Added last</source>
        <translation>Zuletzt</translation>
    </message>
    <message>
        <source>What quantizing the layer adds when all others are quantized already</source>
        <translation>Was die Quantisierung der Schicht hinzufügt, wenn alle anderen schon quantisiert sind</translation>
    </message>
    <message>
        <source>Alone</source>
        <translation>Allein</translation>
    </message>
    <message>
        <source>Loss measured with only this layer quantized</source>
        <translation>Verlust, gemessen mit nur dieser Schicht quantisiert</translation>
    </message>
    <message>
        <source>Predicted</source>
        <translation>Vorhergesagt</translation>
    </message>
    <message>
        <source>Predicted KL of the layer; a dash where it is not scored</source>
        <translation>Vorhergesagte KL der Schicht; ein Strich, wo sie nicht bewertet ist</translation>
    </message>
    <message>
        <source>A&amp;udit…</source>
        <translation>Prü&amp;fen…</translation>
    </message>
    <message>
        <source>Audit the plan</source>
        <translation>Plan prüfen</translation>
    </message>
    <message>
        <source>Layers by their interaction</source>
        <translation>Schichten nach ihrer Wechselwirkung</translation>
    </message>
    <message>
        <source>KL</source>
        <translation>KL</translation>
    </message>
    <message>
        <source>Divergence from floating point at this token or sample; lower is better</source>
        <translation>Abweichung vom Gleitkommamodell bei diesem Token oder Beispiel; kleiner ist besser</translation>
    </message>
    <message>
        <source>Flip</source>
        <translation>Wechsel</translation>
    </message>
    <message>
        <source>The most likely answer is a different one</source>
        <translation>Die wahrscheinlichste Antwort ist eine andere</translation>
    </message>
    <message>
        <source>FP</source>
        <translation>FP</translation>
    </message>
    <message>
        <source>The floating-point model's most likely answer</source>
        <translation>Wahrscheinlichste Antwort des Gleitkommamodells</translation>
    </message>
    <message>
        <source>Quantized</source>
        <translation>Quantisiert</translation>
    </message>
    <message>
        <source>The quantized model's most likely answer</source>
        <translation>Wahrscheinlichste Antwort des quantisierten Modells</translation>
    </message>
    <message>
        <source>Actual</source>
        <translation>Tatsächlich</translation>
    </message>
    <message>
        <source>What follows in the data, or the label</source>
        <translation>Was in den Daten folgt, oder die Klasse</translation>
    </message>
    <message>
        <source>Sample</source>
        <translation>Beispiel</translation>
    </message>
    <message>
        <source>Number of the sample in the evaluation data</source>
        <translation>Nummer des Beispiels in den Auswertungsdaten</translation>
    </message>
    <message>
        <source>Token</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Position in the sample; empty for a whole sample</source>
        <translation>Position im Beispiel; leer für ein ganzes Beispiel</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>The text up to and including the token</source>
        <translation>Der Text bis zum Token einschließlich</translation>
    </message>
    <message>
        <source>Evaluation whose changes are listed</source>
        <translation>Auswertung, deren Änderungen aufgeführt sind</translation>
    </message>
    <message>
        <source>Which evaluated plan; evaluations made by an older version list nothing</source>
        <translation>Welcher ausgewertete Plan; Auswertungen älterer Versionen führen nichts auf</translation>
    </message>
    <message>
        <source>Only fl&amp;ips</source>
        <translation>Nur We&amp;chsel</translation>
    </message>
    <message>
        <source>What quantization changed most</source>
        <translation>Was die Quantisierung am stärksten geändert hat</translation>
    </message>
    <message>
        <source>This evaluation kept no single tokens or samples; evaluate again (F8) to see them</source>
        <translation>Diese Auswertung hat keine einzelnen Token oder Beispiele behalten; erneut auswerten (F8), um sie zu sehen</translation>
    </message>
    <message>
        <source>Metric</source>
        <translation>Maß</translation>
    </message>
    <message>
        <source>↑ higher is better, ↓ lower is better</source>
        <translation>↑ größer ist besser, ↓ kleiner ist besser</translation>
    </message>
    <message>
        <source>The floating-point model on the same data</source>
        <translation>Das Gleitkommamodell auf denselben Daten</translation>
    </message>
    <message>
        <source>The model as the plan quantizes it, on the same data</source>
        <translation>Das Modell, wie der Plan es quantisiert, auf denselben Daten</translation>
    </message>
    <message>
        <source>95 % low</source>
        <translation>95 % unten</translation>
    </message>
    <message>
        <source>Lower end of the 95 % interval, by bootstrap over samples</source>
        <translation>Unteres Ende des 95-%-Intervalls, Bootstrap über Beispiele</translation>
    </message>
    <message>
        <source>95 % high</source>
        <translation>95 % oben</translation>
    </message>
    <message>
        <source>Upper end of the 95 % interval, by bootstrap over samples</source>
        <translation>Oberes Ende des 95-%-Intervalls, Bootstrap über Beispiele</translation>
    </message>
    <message>
        <source>Predicted loss of the plan: KL in nats, or half the squared distance where outputs are not logits</source>
        <translation>Vorhergesagter Verlust des Plans: KL in nats, oder der halbe quadrierte Abstand, wo die Ausgaben keine Logits sind</translation>
    </message>
    <message>
        <source>Unit</source>
        <translation>Einheit</translation>
    </message>
    <message>
        <source>Bits/weight</source>
        <translation>Bits/Gewicht</translation>
    </message>
    <message>
        <source>Bits per weight over the quantizable layers, scales and zero points included</source>
        <translation>Bits je Gewicht über die quantisierbaren Schichten, Skalen und Nullpunkte eingeschlossen</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Bytes of the whole model under the plan</source>
        <translation>Bytes des ganzen Modells unter dem Plan</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>Beispiele</translation>
    </message>
    <message>
        <source>Samples of the evaluation data that were used</source>
        <translation>Verwendete Beispiele der Auswertungsdaten</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>Daten</translation>
    </message>
    <message>
        <source>The held-out data that both models ran on</source>
        <translation>Die zurückgehaltenen Daten, auf denen beide Modelle liefen</translation>
    </message>
    <message>
        <source>Evaluations</source>
        <translation>Auswertungen</translation>
    </message>
    <message>
        <source>Views of the accuracy</source>
        <translation>Ansichten der Genauigkeit</translation>
    </message>
    <message>
        <source>Metrics</source>
        <translation>Maße</translation>
    </message>
    <message>
        <source>What changed</source>
        <translation>Änderungen</translation>
    </message>
    <message>
        <source>Co&amp;mpare</source>
        <translation>&amp;Vergleichen</translation>
    </message>
    <message>
        <source>against</source>
        <translation>gegen</translation>
    </message>
    <message>
        <source>Scheme</source>
        <translation>Schema</translation>
    </message>
    <message>
        <source>Rank</source>
        <translation>Rang</translation>
    </message>
    <message>
        <source>Spearman's rank correlation over the layers; 1: the same order</source>
        <translation>Spearmans Rangkorrelation über die Schichten; 1: dieselbe Reihenfolge</translation>
    </message>
    <message>
        <source>Ratio</source>
        <translation>Verhältnis</translation>
    </message>
    <message>
        <source>Median of the horizontal over the vertical metric; 1: the same size</source>
        <translation>Median des waagerechten durch das senkrechte Maß; 1: gleich groß</translation>
    </message>
    <message>
        <source>Each point is a layer under a scheme: its tip names them, a click selects the layer</source>
        <translation>Jeder Punkt ist eine Schicht unter einem Schema: der Hinweis nennt beide, ein Klick wählt die Schicht</translation>
    </message>
    <message>
        <source>Agreement by scheme</source>
        <translation>Übereinstimmung je Schema</translation>
    </message>
    <message>
        <source>Score by two metrics (F6), such as predicted and measured KL, to see whether they agree.</source>
        <translation>Mit zwei Maßen bewerten (F6), etwa vorhergesagter und gemessener KL, um zu sehen, ob sie übereinstimmen.</translation>
    </message>
    <message>
        <source>Tensor</source>
        <translation>Tensor</translation>
    </message>
    <message>
        <source>Moved</source>
        <translation>Bewegt</translation>
    </message>
    <message>
        <source>How far the last doubling of the data moved the range, of its width; at most 5 % is settled</source>
        <translation>Wie weit die letzte Verdopplung der Daten den Bereich verschoben hat, gemessen an seiner Breite; bis 5 % gilt als beständig</translation>
    </message>
    <message>
        <source>Distance</source>
        <translation>Abstand</translation>
    </message>
    <message>
        <source>Earth mover's distance of calibration to evaluation values, in standard deviations; lower is better</source>
        <translation>Earth-Mover-Abstand der Kalibrier- zu den Auswertungswerten, in Standardabweichungen; kleiner ist besser</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>Std. dev.</source>
        <translation>Std.-Abw.</translation>
    </message>
    <message>
        <source>The value's magnitude in standard deviations of all the tensor's values</source>
        <translation>Betrag des Wertes in Standardabweichungen aller Werte des Tensors</translation>
    </message>
    <message>
        <source>The token's text (its id where there is no tokenizer), or the pixel</source>
        <translation>Text des Tokens (seine Nummer, wo es keinen Tokenizer gibt) oder das Pixel</translation>
    </message>
    <message>
        <source>Position</source>
        <translation>Position</translation>
    </message>
    <message>
        <source>Sample of the calibration data, and the position in it, both from 1</source>
        <translation>Beispiel der Kalibrierdaten und Position darin, beide ab 1</translation>
    </message>
    <message>
        <source>Channel</source>
        <translation>Kanal</translation>
    </message>
    <message>
        <source>&amp;Check the Data</source>
        <translation>Daten &amp;prüfen</translation>
    </message>
    <message>
        <source>Tensors by how far they are from settled</source>
        <translation>Tensoren danach, wie weit sie von beständig sind</translation>
    </message>
    <message>
        <source>Tokens with massive values</source>
        <translation>Token mit riesigen Werten</translation>
    </message>
    <message>
        <source>Views of the calibration data</source>
        <translation>Ansichten der Kalibrierdaten</translation>
    </message>
    <message>
        <source>Saturation</source>
        <translation>Sättigung</translation>
    </message>
    <message>
        <source>Coverage</source>
        <translation>Abdeckung</translation>
    </message>
    <message>
        <source>Tensors</source>
        <translation>Tensoren</translation>
    </message>
    <message>
        <source>Outlier tokens</source>
        <translation>Ausreißer-Token</translation>
    </message>
    <message>
        <source>Calibrate (F5) to see the data that ranges and predictions come from.</source>
        <translation>Kalibrieren (F5), um die Daten zu sehen, aus denen Bereiche und Vorhersagen stammen.</translation>
    </message>
    <message>
        <source>Not checked yet: is there enough data, and is it like what the model will see?</source>
        <translation>Noch nicht geprüft: Reichen die Daten, und gleichen sie dem, was das Modell sehen wird?</translation>
    </message>
    <message>
        <source>Which data are shown</source>
        <translation>Welche Daten gezeigt werden</translation>
    </message>
    <message>
        <source>The data that ranges and curvature come from, or those that plans are evaluated on</source>
        <translation>Die Daten, aus denen Bereiche und Krümmung stammen, oder die, auf denen Pläne ausgewertet werden</translation>
    </message>
    <message>
        <source>Show &amp;Samples</source>
        <translation>&amp;Beispiele zeigen</translation>
    </message>
    <message>
        <source>Read the samples as they are fed to the model</source>
        <translation>Die Beispiele lesen, wie das Modell sie bekommt</translation>
    </message>
    <message>
        <source>The chosen sample in full</source>
        <translation>Das gewählte Beispiel im Ganzen</translation>
    </message>
    <message>
        <source>Show Samples lists the data; choose one to read it in full</source>
        <translation>„Beispiele zeigen“ führt die Daten auf; eines wählen, um es ganz zu lesen</translation>
    </message>
    <message>
        <source>Lowest</source>
        <translation>Kleinster</translation>
    </message>
    <message>
        <source>The channel's lowest value</source>
        <translation>Kleinster Wert des Kanals</translation>
    </message>
    <message>
        <source>Highest</source>
        <translation>Größter</translation>
    </message>
    <message>
        <source>The channel's highest value</source>
        <translation>Größter Wert des Kanals</translation>
    </message>
    <message>
        <source>× median</source>
        <translation>× Median</translation>
    </message>
    <message>
        <source>Largest magnitude over the median channel's; such channels force a scale on all others</source>
        <translation>Größter Betrag durch den des mittleren Kanals; solche Kanäle zwingen allen anderen eine Skala auf</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Share of the layer's predicted loss that comes from rounding this channel's weights</source>
        <translation>Anteil am vorhergesagten Verlust der Schicht, der vom Runden der Gewichte dieses Kanals kommt</translation>
    </message>
    <message>
        <source>Outlier or brushed channels</source>
        <translation>Ausreißer oder markierte Kanäle</translation>
    </message>
    <message>
        <source>Tensor whose channels are shown</source>
        <translation>Tensor, dessen Kanäle gezeigt werden</translation>
    </message>
    <message>
        <source>Weights have a channel for each output, inputs and outputs one for each feature</source>
        <translation>Gewichte haben einen Kanal je Ausgang, Ein- und Ausgaben einen je Merkmal</translation>
    </message>
    <message>
        <source>Which channels are listed</source>
        <translation>Welche Kanäle aufgeführt werden</translation>
    </message>
    <message>
        <source>The outliers, or the channels in the region that is drawn in the plot</source>
        <translation>Die Ausreißer oder die Kanäle im Bereich, der im Diagramm aufgezogen ist</translation>
    </message>
    <message>
        <source>Errors b&amp;y Channel</source>
        <translation>Fehler je &amp;Kanal</translation>
    </message>
    <message>
        <source>Round the layer by the plan and say which channels the predicted loss comes from</source>
        <translation>Die Schicht nach dem Plan runden und sagen, aus welchen Kanälen der vorhergesagte Verlust kommt</translation>
    </message>
    <message>
        <source>Select a layer to see its channels.</source>
        <translation>Eine Schicht wählen, um ihre Kanäle zu sehen.</translation>
    </message>
    <message>
        <source>Open a model first.</source>
        <translation>Zuerst ein Modell öffnen.</translation>
    </message>
    <message>
        <source>Open a model first</source>
        <translation>Zuerst ein Modell öffnen</translation>
    </message>
    <message>
        <source>Errors by channel</source>
        <translation>Fehler je Kanal</translation>
    </message>
    <message>
        <source>Fact</source>
        <translation>Angabe</translation>
    </message>
    <message>
        <source>This session</source>
        <translation>Diese Sitzung</translation>
    </message>
    <message>
        <source>Other session</source>
        <translation>Andere Sitzung</translation>
    </message>
    <message>
        <source>Bits, this</source>
        <translation>Bits, diese</translation>
    </message>
    <message>
        <source>Bits per weight in this session</source>
        <translation>Bits je Gewicht in dieser Sitzung</translation>
    </message>
    <message>
        <source>Bits, other</source>
        <translation>Bits, andere</translation>
    </message>
    <message>
        <source>Bits per weight in the other session</source>
        <translation>Bits je Gewicht in der anderen Sitzung</translation>
    </message>
    <message>
        <source>Loss, this</source>
        <translation>Verlust, diese</translation>
    </message>
    <message>
        <source>Loss by this session's scores; lower is better</source>
        <translation>Verlust nach den Werten dieser Sitzung; kleiner ist besser</translation>
    </message>
    <message>
        <source>Loss, other</source>
        <translation>Verlust, andere</translation>
    </message>
    <message>
        <source>Loss by the other session's scores; lower is better</source>
        <translation>Verlust nach den Werten der anderen Sitzung; kleiner ist besser</translation>
    </message>
    <message>
        <source>Change</source>
        <translation>Änderung</translation>
    </message>
    <message>
        <source>The other session's loss minus this session's</source>
        <translation>Verlust der anderen Sitzung minus dem dieser</translation>
    </message>
    <message>
        <source>95 % interval</source>
        <translation>95-%-Intervall</translation>
    </message>
    <message>
        <source>By bootstrap over samples</source>
        <translation>Bootstrap über Beispiele</translation>
    </message>
    <message>
        <source>&amp;Open Another Session…</source>
        <translation>&amp;Andere Sitzung öffnen…</translation>
    </message>
    <message>
        <source>Only &amp;differences</source>
        <translation>Nur &amp;Unterschiede</translation>
    </message>
    <message>
        <source>Views of the comparison</source>
        <translation>Ansichten des Vergleichs</translation>
    </message>
    <message>
        <source>Open a session, then another one to compare it with.</source>
        <translation>Eine Sitzung öffnen, dann eine andere zum Vergleich.</translation>
    </message>
    <message>
        <source>Layers of both sessions</source>
        <translation>Schichten beider Sitzungen</translation>
    </message>
    <message>
        <source>What the sessions were made from</source>
        <translation>Woraus die Sitzungen entstanden sind</translation>
    </message>
    <message>
        <source>What both sessions measured</source>
        <translation>Was beide Sitzungen gemessen haben</translation>
    </message>
    <message>
        <source>Compare with a session</source>
        <translation>Mit einer Sitzung vergleichen</translation>
    </message>
    <message>
        <source>There is no {}</source>
        <translation>Es gibt kein {}</translation>
    </message>
    <message>
        <source>Open another session to see both side by side: layers, losses and evaluations. Neither is changed.</source>
        <translation>Eine andere Sitzung öffnen, um beide nebeneinander zu sehen: Schichten, Verluste und Auswertungen. Keine wird geändert.</translation>
    </message>
    <message>
        <source>Write to</source>
        <translation>Schreiben nach</translation>
    </message>
    <message>
        <source>&amp;Write to</source>
        <translation>&amp;Schreiben nach</translation>
    </message>
    <message>
        <source>The file or folder to write</source>
        <translation>Die Datei oder der Ordner, der geschrieben wird</translation>
    </message>
    <message>
        <source>E&amp;xport</source>
        <translation>E&amp;xportieren</translation>
    </message>
    <message>
        <source>Write the plan in the selected form, and prove it</source>
        <translation>Den Plan in der gewählten Form schreiben und prüfen</translation>
    </message>
    <message>
        <source>Re&amp;pair</source>
        <translation>Re&amp;parieren</translation>
    </message>
    <message>
        <source>Give refused layers the nearest scheme that it runs</source>
        <translation>Abgelehnten Schichten das nächstliegende Schema geben, das läuft</translation>
    </message>
    <message>
        <source>Copy &amp;Command</source>
        <translation>&amp;Befehl kopieren</translation>
    </message>
    <message>
        <source>Copy the command line that writes the same</source>
        <translation>Die Befehlszeile kopieren, die dasselbe schreibt</translation>
    </message>
    <message>
        <source>Open Fol&amp;der</source>
        <translation>Or&amp;dner öffnen</translation>
    </message>
    <message>
        <source>Show the folder that it is written to</source>
        <translation>Den Ordner zeigen, in den geschrieben wird</translation>
    </message>
    <message>
        <source>What was written</source>
        <translation>Was geschrieben wurde</translation>
    </message>
    <message>
        <source>Copied the command</source>
        <translation>Befehl kopiert</translation>
    </message>
    <message>
        <source>it writes the saved session's plan in the same form</source>
        <translation>er schreibt den Plan der gespeicherten Sitzung in derselben Form</translation>
    </message>
    <message>
        <source>Runtime</source>
        <translation>Laufzeit</translation>
    </message>
    <message>
        <source>The program that ran the exported model</source>
        <translation>Das Programm, in dem das exportierte Modell lief</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>The whole file, tokenizer and all</source>
        <translation>Die ganze Datei samt Tokenizer</translation>
    </message>
    <message>
        <source>The tensors alone</source>
        <translation>Nur die Tensoren</translation>
    </message>
    <message>
        <source>Runtime loss</source>
        <translation>Verlust der Laufzeit</translation>
    </message>
    <message>
        <source>Mean KL divergence of the runtime's answers from the floating-point model (encoders: 1 - cosine)</source>
        <translation>Mittlere KL-Divergenz der Antworten der Laufzeit vom Gleitkommamodell (Encoder: 1 − Kosinus)</translation>
    </message>
    <message>
        <source>Evaluated loss</source>
        <translation>Ausgewerteter Verlust</translation>
    </message>
    <message>
        <source>The same of our evaluation, on the same tokens</source>
        <translation>Dasselbe bei unserer Auswertung, auf denselben Token</translation>
    </message>
    <message>
        <source>Difference</source>
        <translation>Differenz</translation>
    </message>
    <message>
        <source>Of the runtime's answers from our evaluation: llama.cpp rounds the inputs of quantized matrices, ONNX Runtime computes as the plan says</source>
        <translation>Der Antworten der Laufzeit von unserer Auswertung: llama.cpp rundet die Eingaben quantisierter Matrizen, ONNX Runtime rechnet, wie der Plan es sagt</translation>
    </message>
    <message>
        <source>Due to rounding</source>
        <translation>Durch Rundung</translation>
    </message>
    <message>
        <source>How far our own evaluation moves when inputs are rounded as there: what explains the distance</source>
        <translation>Wie weit sich unsere eigene Auswertung bewegt, wenn Eingaben wie dort gerundet werden: was den Abstand erklärt</translation>
    </message>
    <message>
        <source>Positions at which the likeliest token is that of our evaluation</source>
        <translation>Positionen, an denen das wahrscheinlichste Token das unserer Auswertung ist</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>Prompt</translation>
    </message>
    <message>
        <source>Speed of reading a prompt; of models that take no tokens: samples in a second</source>
        <translation>Geschwindigkeit beim Lesen eines Prompts; bei Modellen ohne Token: Beispiele je Sekunde</translation>
    </message>
    <message>
        <source>Generation</source>
        <translation>Erzeugung</translation>
    </message>
    <message>
        <source>Speed of generating</source>
        <translation>Geschwindigkeit beim Erzeugen</translation>
    </message>
    <message>
        <source>Peak memory of the runtime's process</source>
        <translation>Spitzenspeicher des Laufzeitprozesses</translation>
    </message>
    <message>
        <source>Positions</source>
        <translation>Positionen</translation>
    </message>
    <message>
        <source>Over how many tokens the losses are means</source>
        <translation>Über wie viele Token die Verluste gemittelt sind</translation>
    </message>
    <message>
        <source>What the losses were measured on: the first samples of it</source>
        <translation>Worauf die Verluste gemessen wurden: die ersten Beispiele davon</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Whether the runtime splits a text into the same tokens</source>
        <translation>Ob die Laufzeit einen Text in dieselben Token zerlegt</translation>
    </message>
    <message>
        <source>Plans in their runtime</source>
        <translation>Pläne in ihrer Laufzeit</translation>
    </message>
    <message>
        <source>Open a model to deploy it.</source>
        <translation>Ein Modell öffnen, um es auszuliefern.</translation>
    </message>
    <message>
        <source>How many layers are shown</source>
        <translation>Wie viele Schichten gezeigt werden</translation>
    </message>
    <message>
        <source>One layer, the selected layers laid over each other, a picture for each of them, or what a key-value cache would hold: the outputs of all layers that make keys and values</source>
        <translation>Eine Schicht, die gewählten Schichten übereinander, ein Diagramm für jede oder was ein Key-Value-Cache enthielte: die Ausgaben aller Schichten, die Keys und Values bilden</translation>
    </message>
    <message>
        <source>&amp;Log</source>
        <translation>&amp;Log</translation>
    </message>
    <message>
        <source>&amp;Before/After</source>
        <translation>&amp;Vorher/Nachher</translation>
    </message>
    <message>
        <source>Lay over the weights what the plan makes of them (rounded, transformed), and over the inputs what its transforms make of them</source>
        <translation>Über die Gewichte legen, was der Plan aus ihnen macht (gerundet, transformiert), und über die Eingaben, was seine Transformationen aus ihnen machen</translation>
    </message>
    <message>
        <source>Lin&amp;k</source>
        <translation>&amp;Koppeln</translation>
    </message>
    <message>
        <source>Select a layer to see its distributions.</source>
        <translation>Eine Schicht wählen, um ihre Verteilungen zu sehen.</translation>
    </message>
    <message>
        <source>What a key-value cache would be filled with, taken where the layers that make keys and values (found by their names) give it out. Where a model rotates keys by their position, that happens after this</source>
        <translation>Womit ein Key-Value-Cache gefüllt würde, abgegriffen, wo die Schichten, die Keys und Values bilden (am Namen erkannt), es ausgeben. Wo ein Modell Keys nach ihrer Position dreht, geschieht das danach</translation>
    </message>
    <message>
        <source>Tensor whose range is shown</source>
        <translation>Tensor, dessen Bereich gezeigt wird</translation>
    </message>
    <message>
        <source>Whose range the numbers are: dragging a line in a plot chooses it too</source>
        <translation>Wessen Bereich die Zahlen sind: Ziehen einer Linie im Diagramm wählt ihn ebenfalls</translation>
    </message>
    <message>
        <source>Range method</source>
        <translation>Bereichsverfahren</translation>
    </message>
    <message>
        <source>Which calibrated range is in force</source>
        <translation>Welcher kalibrierte Bereich gilt</translation>
    </message>
    <message>
        <source>Quality of the range</source>
        <translation>Güte des Bereichs</translation>
    </message>
    <message>
        <source>Calibrate (F5) to see inputs, outputs and ranges</source>
        <translation>Kalibrieren (F5), um Eingaben, Ausgaben und Bereiche zu sehen</translation>
    </message>
    <message>
        <source>to</source>
        <translation>bis</translation>
    </message>
    <message>
        <source>Not taken: the range must hold zero and not be empty</source>
        <translation>Nicht übernommen: Der Bereich muss die Null enthalten und darf nicht leer sein</translation>
    </message>
    <message>
        <source>Part</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>Share of the noise at the last block's output that comes from the layer, as predicted</source>
        <translation>Anteil am Rauschen am Ausgang des letzten Blocks, der von der Schicht kommt, wie vorhergesagt</translation>
    </message>
    <message>
        <source>&amp;Measure</source>
        <translation>&amp;Messen</translation>
    </message>
    <message>
        <source>Layers that send the most noise to the output</source>
        <translation>Schichten, die das meiste Rauschen zum Ausgang schicken</translation>
    </message>
    <message>
        <source>Calibrate (F5), give layers a scheme, then measure where error enters and grows.</source>
        <translation>Kalibrieren (F5), Schichten ein Schema geben, dann messen, wo Fehler entsteht und wächst.</translation>
    </message>
    <message>
        <source>Measure how much of the signal is left behind every block. With the weight error scored first (F6), the prediction stands beside it.</source>
        <translation>Messen, wie viel vom Signal hinter jedem Block übrig ist. Ist der Gewichtsfehler vorher bewertet (F6), steht die Vorhersage daneben.</translation>
    </message>
    <message>
        <source>Job</source>
        <translation>Auftrag</translation>
    </message>
    <message>
        <source>Status</source>
        <translation>Status</translation>
    </message>
    <message>
        <source>queued, running, done, failed or cancelled</source>
        <translation>wartet, läuft, erledigt, gescheitert oder abgebrochen</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Share of the work that is done</source>
        <translation>Anteil der erledigten Arbeit</translation>
    </message>
    <message>
        <source>Took</source>
        <translation>Dauer</translation>
    </message>
    <message>
        <source>Since the job began, without its time in the queue</source>
        <translation>Seit Beginn des Auftrags, ohne Wartezeit</translation>
    </message>
    <message>
        <source>Estimated</source>
        <translation>Geschätzt</translation>
    </message>
    <message>
        <source>What the job was estimated to take before it began; short jobs are not</source>
        <translation>Was vor Beginn für den Auftrag geschätzt wurde; kurze Aufträge werden nicht geschätzt</translation>
    </message>
    <message>
        <source>Left</source>
        <translation>Rest</translation>
    </message>
    <message>
        <source>Time left: by the estimate at first, then by the share that is done</source>
        <translation>Restzeit: zuerst nach der Schätzung, dann nach dem erledigten Anteil</translation>
    </message>
    <message>
        <source>After</source>
        <translation>Nach</translation>
    </message>
    <message>
        <source>Since the job began</source>
        <translation>Seit Beginn des Auftrags</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Meldung</translation>
    </message>
    <message>
        <source>The most that the engine process used while the job ran</source>
        <translation>Das meiste, was der Rechenprozess während des Auftrags belegt hat</translation>
    </message>
    <message>
        <source>What the job does now, did last, or why it failed</source>
        <translation>Was der Auftrag gerade tut, zuletzt tat oder warum er scheiterte</translation>
    </message>
    <message>
        <source>Messages and log</source>
        <translation>Meldungen und Protokoll</translation>
    </message>
    <message>
        <source>Messages</source>
        <translation>Meldungen</translation>
    </message>
    <message>
        <source>Log of the job</source>
        <translation>Protokoll des Auftrags</translation>
    </message>
    <message>
        <source>Resident memory of the engine process, which holds the model, and of this window</source>
        <translation>Belegter Speicher des Rechenprozesses, der das Modell hält, und dieses Fensters</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>&amp;Abbrechen</translation>
    </message>
    <message>
        <source>Cancel the selected job, or the running one</source>
        <translation>Den gewählten oder den laufenden Auftrag abbrechen</translation>
    </message>
    <message>
        <source>Re&amp;try</source>
        <translation>&amp;Wiederholen</translation>
    </message>
    <message>
        <source>Start the selected failed or cancelled job again</source>
        <translation>Den gewählten gescheiterten oder abgebrochenen Auftrag erneut starten</translation>
    </message>
    <message>
        <source>Copy as &amp;Python</source>
        <translation>Als &amp;Python kopieren</translation>
    </message>
    <message>
        <source>Copy a script that does what the selected job does</source>
        <translation>Ein Skript kopieren, das tut, was der gewählte Auftrag tut</translation>
    </message>
    <message>
        <source>Filter layers</source>
        <translation>Schichten filtern</translation>
    </message>
    <message>
        <source>Open a model to see its layers.</source>
        <translation>Ein Modell öffnen, um seine Schichten zu sehen.</translation>
    </message>
    <message>
        <source>&amp;Select Similar Layers</source>
        <translation>Ähnliche Schichten &amp;wählen</translation>
    </message>
    <message>
        <source>&amp;Copy as a Table	Ctrl+C</source>
        <translation>Als Tabelle &amp;kopieren	Strg+C</translation>
    </message>
    <message>
        <source>C&amp;opy More</source>
        <translation>&amp;Mehr kopieren</translation>
    </message>
    <message>
        <source>Layer columns</source>
        <translation>Spalten der Schichten</translation>
    </message>
    <message>
        <source>Next step</source>
        <translation>Nächster Schritt</translation>
    </message>
    <message>
        <source>Running…</source>
        <translation>Läuft…</translation>
    </message>
    <message>
        <source>What the plans cost</source>
        <translation>Was die Pläne kosten</translation>
    </message>
    <message>
        <source>Bytes of the whole model, or microseconds of its timed layers one after another</source>
        <translation>Bytes des ganzen Modells oder Mikrosekunden seiner gemessenen Schichten nacheinander</translation>
    </message>
    <message>
        <source>&amp;Time the Candidates</source>
        <translation>Kandidaten &amp;messen</translation>
    </message>
    <message>
        <source>Why the selected layer has its scheme</source>
        <translation>Warum die gewählte Schicht ihr Schema hat</translation>
    </message>
    <message>
        <source>Size of the plan</source>
        <translation>Größe des Plans</translation>
    </message>
    <message>
        <source>smaller</source>
        <translation>kleiner</translation>
    </message>
    <message>
        <source>faster</source>
        <translation>schneller</translation>
    </message>
    <message>
        <source>The front of best plans appears once the sensitivity is computed (F6).</source>
        <translation>Die Front der besten Pläne erscheint, sobald die Empfindlichkeit berechnet ist (F6).</translation>
    </message>
    <message>
        <source>more accurate</source>
        <translation>genauer</translation>
    </message>
    <message>
        <source>&amp;Copy the Figure</source>
        <translation>Kennzahl &amp;kopieren</translation>
    </message>
    <message>
        <source>What the plan comes to</source>
        <translation>Was der Plan ergibt</translation>
    </message>
    <message>
        <source>Bits</source>
        <translation>Bits</translation>
    </message>
    <message>
        <source>Bits per weight</source>
        <translation>Bits je Gewicht</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>Verlust</translation>
    </message>
    <message>
        <source>Of weights and, where they were scored, of rounded inputs; lower is better</source>
        <translation>Der Gewichte und, wo sie bewertet wurden, der gerundeten Eingaben; kleiner ist besser</translation>
    </message>
    <message>
        <source>Median times of the layers' kernels one after another, at the smallest batch that was timed</source>
        <translation>Medianzeiten der Kernel der Schichten nacheinander, beim kleinsten gemessenen Batch</translation>
    </message>
    <message>
        <source>Scheme in the first</source>
        <translation>Schema im ersten</translation>
    </message>
    <message>
        <source>How the first plan stores the weights</source>
        <translation>Wie der erste Plan die Gewichte speichert</translation>
    </message>
    <message>
        <source>Scheme in the second</source>
        <translation>Schema im zweiten</translation>
    </message>
    <message>
        <source>How the second plan stores the weights</source>
        <translation>Wie der zweite Plan die Gewichte speichert</translation>
    </message>
    <message>
        <source>Δ size</source>
        <translation>Δ Größe</translation>
    </message>
    <message>
        <source>Bytes of the second minus the first</source>
        <translation>Bytes des zweiten minus die des ersten</translation>
    </message>
    <message>
        <source>Δ loss</source>
        <translation>Δ Verlust</translation>
    </message>
    <message>
        <source>Loss of the second minus the first, for each layer as if it were the only one; above 0 is worse. Errors of several layers cost more or less together, so the rows need not add up to the plans' difference</source>
        <translation>Verlust des zweiten minus Verlust des ersten, für jede Schicht, als wäre sie die einzige; über 0 ist schlechter. Fehler mehrerer Schichten kosten gemeinsam mehr oder weniger, deshalb ergeben die Zeilen zusammen nicht unbedingt den Unterschied der Pläne</translation>
    </message>
    <message>
        <source>Named plans</source>
        <translation>Benannte Pläne</translation>
    </message>
    <message>
        <source>Layers that two plans store differently</source>
        <translation>Schichten, die zwei Pläne verschieden speichern</translation>
    </message>
    <message>
        <source>&amp;Save As</source>
        <translation>&amp;Speichern unter</translation>
    </message>
    <message>
        <source>Save the current plan in this session under that name</source>
        <translation>Den aktuellen Plan unter diesem Namen in der Sitzung speichern</translation>
    </message>
    <message>
        <source>&amp;Use</source>
        <translation>&amp;Verwenden</translation>
    </message>
    <message>
        <source>Make the selected plan the current one</source>
        <translation>Den gewählten Plan zum aktuellen machen</translation>
    </message>
    <message>
        <source>&amp;Delete</source>
        <translation>&amp;Löschen</translation>
    </message>
    <message>
        <source>Remove the selected plan from the session</source>
        <translation>Den gewählten Plan aus der Sitzung entfernen</translation>
    </message>
    <message>
        <source>&amp;Mark</source>
        <translation>&amp;Markieren</translation>
    </message>
    <message>
        <source>Select a plan to compare it with the current one, or two to compare them</source>
        <translation>Einen Plan auswählen, um ihn mit dem aktuellen zu vergleichen, oder zwei, um diese zu vergleichen</translation>
    </message>
    <message>
        <source>How weights are stored</source>
        <translation>Wie Gewichte gespeichert werden</translation>
    </message>
    <message>
        <source>Sum of the layers' scores; lower is better</source>
        <translation>Summe der Werte der Schichten; kleiner ist besser</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>Number of weights</source>
        <translation>Zahl der Gewichte</translation>
    </message>
    <message>
        <source>Views of the plan</source>
        <translation>Ansichten des Plans</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>Regeln</translation>
    </message>
    <message>
        <source>Transforms</source>
        <translation>Transformationen</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>Text</translation>
    </message>
    <message>
        <source>Plans</source>
        <translation>Pläne</translation>
    </message>
    <message>
        <source>What the plan is made of</source>
        <translation>Woraus der Plan besteht</translation>
    </message>
    <message>
        <source>No layer selected</source>
        <translation>Keine Schicht gewählt</translation>
    </message>
    <message>
        <source>Open a model to plan its layers.</source>
        <translation>Ein Modell öffnen, um seine Schichten zu planen.</translation>
    </message>
    <message>
        <source>Rules are tried in this order; the first that matches a layer decides</source>
        <translation>Regeln werden in dieser Reihenfolge versucht; die erste, die auf eine Schicht passt, entscheidet</translation>
    </message>
    <message>
        <source>Pattern</source>
        <translation>Muster</translation>
    </message>
    <message>
        <source>Gives</source>
        <translation>Gibt</translation>
    </message>
    <message>
        <source>Decides for</source>
        <translation>Entscheidet für</translation>
    </message>
    <message>
        <source>Layers that no earlier rule decides, of those that it matches</source>
        <translation>Schichten, die keine frühere Regel entscheidet, von denen, auf die sie passt</translation>
    </message>
    <message>
        <source>The layers that the rule matches</source>
        <translation>Die Schichten, auf die die Regel passt</translation>
    </message>
    <message>
        <source>Drag a rule to try it earlier or later</source>
        <translation>Eine Regel ziehen, um sie früher oder später zu versuchen</translation>
    </message>
    <message>
        <source>What the pattern matches</source>
        <translation>Worauf das Muster passt</translation>
    </message>
    <message>
        <source>Move &amp;Up</source>
        <translation>Nach &amp;oben</translation>
    </message>
    <message>
        <source>Try the rule earlier</source>
        <translation>Die Regel früher versuchen</translation>
    </message>
    <message>
        <source>Move &amp;Down</source>
        <translation>Nach &amp;unten</translation>
    </message>
    <message>
        <source>Try the rule later</source>
        <translation>Die Regel später versuchen</translation>
    </message>
    <message>
        <source>Rem&amp;ove</source>
        <translation>&amp;Entfernen</translation>
    </message>
    <message>
        <source>Remove the rule</source>
        <translation>Die Regel entfernen</translation>
    </message>
    <message>
        <source>Select &amp;Layers</source>
        <translation>Schichten &amp;wählen</translation>
    </message>
    <message>
        <source>Select the layers that the rule matches</source>
        <translation>Die Schichten wählen, auf die die Regel passt</translation>
    </message>
    <message>
        <source>Pattern of a new rule</source>
        <translation>Muster einer neuen Regel</translation>
    </message>
    <message>
        <source>Scheme of a new rule</source>
        <translation>Schema einer neuen Regel</translation>
    </message>
    <message>
        <source>&amp;Add</source>
        <translation>&amp;Hinzufügen</translation>
    </message>
    <message>
        <source>Add the rule before all others: the first that matches decides</source>
        <translation>Die Regel vor allen anderen einfügen: die erste passende entscheidet</translation>
    </message>
    <message>
        <source>Budget</source>
        <translation>Budget</translation>
    </message>
    <message>
        <source>Unit of the budget</source>
        <translation>Einheit des Budgets</translation>
    </message>
    <message>
        <source>&amp;Search</source>
        <translation>&amp;Suchen</translation>
    </message>
    <message>
        <source>Reason that no plan fits the budget</source>
        <translation>Warum es im Budget keinen Plan gibt</translation>
    </message>
    <message>
        <source>Search within the smallest budget for which there is a plan</source>
        <translation>Im kleinsten Budget suchen, für das es einen Plan gibt</translation>
    </message>
    <message>
        <source>&amp;Budget</source>
        <translation>&amp;Budget</translation>
    </message>
    <message>
        <source>Layers that a search leaves out</source>
        <translation>Schichten, die eine Suche auslässt</translation>
    </message>
    <message>
        <source>Compute the sensitivity first (F6)</source>
        <translation>Zuerst die Empfindlichkeit berechnen (F6)</translation>
    </message>
    <message>
        <source>Target of the plan</source>
        <translation>Ziel des Plans</translation>
    </message>
    <message>
        <source>What the plan must run on: only the schemes that it runs are offered</source>
        <translation>Worauf der Plan laufen muss: Nur Schemata, die dort laufen, werden angeboten</translation>
    </message>
    <message>
        <source>What the target cannot run</source>
        <translation>Was das Ziel nicht ausführen kann</translation>
    </message>
    <message>
        <source>Se&amp;lect</source>
        <translation>&amp;Wählen</translation>
    </message>
    <message>
        <source>Select the layers that the target cannot run</source>
        <translation>Die Schichten wählen, die das Ziel nicht ausführen kann</translation>
    </message>
    <message>
        <source>Not everything could be repaired</source>
        <translation>Nicht alles ließ sich reparieren</translation>
    </message>
    <message>
        <source>&amp;Target</source>
        <translation>&amp;Ziel</translation>
    </message>
    <message>
        <source>Plan as JSON</source>
        <translation>Plan als JSON</translation>
    </message>
    <message>
        <source>What is wrong with the text</source>
        <translation>Was am Text falsch ist</translation>
    </message>
    <message>
        <source>&amp;Apply</source>
        <translation>&amp;Anwenden</translation>
    </message>
    <message>
        <source>Make the text the plan</source>
        <translation>Den Text zum Plan machen</translation>
    </message>
    <message>
        <source>&amp;Discard</source>
        <translation>&amp;Verwerfen</translation>
    </message>
    <message>
        <source>Show the plan as it is</source>
        <translation>Den Plan zeigen, wie er ist</translation>
    </message>
    <message>
        <source>Transforms of the plan</source>
        <translation>Transformationen des Plans</translation>
    </message>
    <message>
        <source>Carry the transform out earlier</source>
        <translation>Die Transformation früher ausführen</translation>
    </message>
    <message>
        <source>Carry the transform out later</source>
        <translation>Die Transformation später ausführen</translation>
    </message>
    <message>
        <source>SQNR</source>
        <translation>SQNR</translation>
    </message>
    <message>
        <source>Size of the weight over its quantization error</source>
        <translation>Größe des Gewichts durch seinen Quantisierungsfehler</translation>
    </message>
    <message>
        <source>Largest error</source>
        <translation>Größter Fehler</translation>
    </message>
    <message>
        <source>The largest error of any weight, as a share of the largest weight</source>
        <translation>Der größte Fehler eines Gewichts als Anteil des größten Gewichts</translation>
    </message>
    <message>
        <source>Zeros</source>
        <translation>Nullen</translation>
    </message>
    <message>
        <source>Share of the weights that became 0</source>
        <translation>Anteil der Gewichte, die 0 wurden</translation>
    </message>
    <message>
        <source>&amp;Compare Weights</source>
        <translation>Gewichte &amp;vergleichen</translation>
    </message>
    <message>
        <source>Quantized weights against the original</source>
        <translation>Quantisierte Gewichte gegen das Original</translation>
    </message>
    <message>
        <source>Compare the weights of this plan with those of the model: how far each layer's lie apart.</source>
        <translation>Die Gewichte dieses Plans mit denen des Modells vergleichen: wie weit die jeder Schicht auseinanderliegen.</translation>
    </message>
    <message>
        <source>the proof in {} needs its package {w}; install it: {}</source>
        <translation>der Nachweis in {} braucht sein Paket {w}; installieren mit: {}</translation>
    </message>
    <message>
        <source>Sensitivity metric</source>
        <translation>Empfindlichkeitsmaß</translation>
    </message>
    <message>
        <source>Which scores are shown; those of weights are also summed and searched with. Higher is worse, always</source>
        <translation>Welche Werte gezeigt werden; mit denen der Gewichte wird auch summiert und gesucht. Größer ist immer schlechter</translation>
    </message>
    <message>
        <source>Order of the layers</source>
        <translation>Reihenfolge der Schichten</translation>
    </message>
    <message>
        <source>In the order of the network; those that suffer most first, as such or for each byte that rounding saves; or summed over each block or kind of layer</source>
        <translation>In der Reihenfolge des Netzes; die am meisten leidenden zuerst, an sich oder je gespartem Byte; oder summiert je Block oder Art der Schicht</translation>
    </message>
    <message>
        <source>Ref&amp;ine…</source>
        <translation>&amp;Verfeinern…</translation>
    </message>
    <message>
        <source>Refine close decisions</source>
        <translation>Knappe Entscheidungen verfeinern</translation>
    </message>
    <message>
        <source>Open a model to score its layers.</source>
        <translation>Ein Modell öffnen, um seine Schichten zu bewerten.</translation>
    </message>
    <message>
        <source>Shape</source>
        <translation>Form</translation>
    </message>
    <message>
        <source>Outputs × inputs of the layer's matrix</source>
        <translation>Ausgänge × Eingänge der Matrix der Schicht</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>Batch</translation>
    </message>
    <message>
        <source>Rows of inputs that one launch multiplies</source>
        <translation>Zeilen von Eingaben, die ein Start multipliziert</translation>
    </message>
    <message>
        <source>How the weights are stored</source>
        <translation>Wie die Gewichte gespeichert sind</translation>
    </message>
    <message>
        <source>Median time of the floating-point kernel</source>
        <translation>Medianzeit des Gleitkommakernels</translation>
    </message>
    <message>
        <source>Median time of the kernel that serves the scheme</source>
        <translation>Medianzeit des Kernels für das Schema</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Floating-point time over quantized time; above 1 is faster</source>
        <translation>Gleitkommazeit durch quantisierte Zeit; über 1 ist schneller</translation>
    </message>
    <message>
        <source>Kernel</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>The kernel that serves the scheme</source>
        <translation>Der Kernel für das Schema</translation>
    </message>
    <message>
        <source>FP kernel</source>
        <translation>FP-Kernel</translation>
    </message>
    <message>
        <source>The floating-point kernel beside it</source>
        <translation>Der Gleitkommakernel daneben</translation>
    </message>
    <message>
        <source>Reads</source>
        <translation>Liest</translation>
    </message>
    <message>
        <source>Bytes that a launch must read over the median time; counted for CUDA kernels only</source>
        <translation>Bytes, die ein Start lesen muss, durch die Medianzeit; nur für CUDA-Kernel gezählt</translation>
    </message>
    <message>
        <source>Operations</source>
        <translation>Operationen</translation>
    </message>
    <message>
        <source>Multiplications and additions of the product over the median time, 1e12 per second</source>
        <translation>Multiplikationen und Additionen des Produkts durch die Medianzeit, 1e12 je Sekunde</translation>
    </message>
    <message>
        <source>Occupancy</source>
        <translation>Auslastung</translation>
    </message>
    <message>
        <source>How much of a multiprocessor each kernel can fill by its registers, shared memory and block, and what limits it</source>
        <translation>Wie viel eines Multiprozessors jeder Kernel mit Registern, gemeinsamem Speicher und Block füllen kann und was ihn begrenzt</translation>
    </message>
    <message>
        <source>The device that was timed, and its threads</source>
        <translation>Das gemessene Gerät und seine Threads</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Bemerkung</translation>
    </message>
    <message>
        <source>Views of the plan's cost</source>
        <translation>Ansichten der Kosten des Plans</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>Kernel</translation>
    </message>
    <message>
        <source>Every timed kernel beside floating point</source>
        <translation>Jeder gemessene Kernel neben dem Gleitkommakernel</translation>
    </message>
    <message>
        <source>Batch sizes</source>
        <translation>Batchgrößen</translation>
    </message>
    <message>
        <source>How the times grow with the batch</source>
        <translation>Wie die Zeiten mit dem Batch wachsen</translation>
    </message>
    <message>
        <source>Roofline</source>
        <translation>Roofline</translation>
    </message>
    <message>
        <source>How close the kernels come to what memory and arithmetic allow</source>
        <translation>Wie nahe die Kernel dem kommen, was Speicher und Rechenwerk erlauben</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>Genauigkeit</translation>
    </message>
    <message>
        <source>How many layers and bytes go from what to what</source>
        <translation>Wie viele Schichten und Bytes von was zu was wechseln</translation>
    </message>
    <message>
        <source>Batch size that is shown</source>
        <translation>Gezeigte Batchgröße</translation>
    </message>
    <message>
        <source>Rows of inputs at which the kernels were timed</source>
        <translation>Zeilen von Eingaben, bei denen die Kernel gemessen wurden</translation>
    </message>
    <message>
        <source>Copy ncu Command</source>
        <translation>ncu-Befehl kopieren</translation>
    </message>
    <message>
        <source>Copied: how to profile with Nsight Compute</source>
        <translation>Kopiert: Profilieren mit Nsight Compute</translation>
    </message>
    <message>
        <source>Kernel times</source>
        <translation>Kernelzeiten</translation>
    </message>
    <message>
        <source>Precision transitions</source>
        <translation>Genauigkeitsübergänge</translation>
    </message>
    <message>
        <source>Copy ncu command: not now</source>
        <translation>ncu-Befehl kopieren: nicht jetzt</translation>
    </message>
    <message>
        <source>The selected kernels ran on the CPU</source>
        <translation>Die gewählten Kernel liefen auf der CPU</translation>
    </message>
    <message>
        <source>Sweep batch sizes: not now</source>
        <translation>Batchgrößen durchlaufen: nicht jetzt</translation>
    </message>
    <message>
        <source>Kernel whose times are shown</source>
        <translation>Kernel, dessen Zeiten gezeigt werden</translation>
    </message>
    <message>
        <source>One shape under one scheme, or the sum of all that were timed at every batch size</source>
        <translation>Eine Form unter einem Schema oder die Summe aller, die bei jeder Batchgröße gemessen wurden</translation>
    </message>
    <message>
        <source>S&amp;weep Batch Sizes</source>
        <translation>Batchgrößen &amp;durchlaufen</translation>
    </message>
    <message>
        <source>Whose ceilings are drawn</source>
        <translation>Wessen Grenzen gezeichnet sind</translation>
    </message>
    <message>
        <source>Ceilings of FP32 arithmetic and memory: measured on this machine, or from a data sheet</source>
        <translation>Grenzen von FP32-Rechnung und Speicher: auf diesem Rechner gemessen oder aus einem Datenblatt</translation>
    </message>
    <message>
        <source>Measure &amp;Ceilings</source>
        <translation>&amp;Grenzen messen</translation>
    </message>
    <message>
        <source>From</source>
        <translation>Von</translation>
    </message>
    <message>
        <source>How the model stores the weight</source>
        <translation>Wie das Modell das Gewicht speichert</translation>
    </message>
    <message>
        <source>To</source>
        <translation>Nach</translation>
    </message>
    <message>
        <source>How the plan stores it</source>
        <translation>Wie der Plan es speichert</translation>
    </message>
    <message>
        <source>Layers with this change; tied ones count once</source>
        <translation>Schichten mit dieser Änderung; gekoppelte zählen einmal</translation>
    </message>
    <message>
        <source>Count</source>
        <translation>Anzahl</translation>
    </message>
    <message>
        <source>Before</source>
        <translation>Vorher</translation>
    </message>
    <message>
        <source>Bytes of their weights as the model stores them</source>
        <translation>Bytes ihrer Gewichte, wie das Modell sie speichert</translation>
    </message>
    <message>
        <source>Bytes of their weights under the plan</source>
        <translation>Bytes ihrer Gewichte unter dem Plan</translation>
    </message>
    <message>
        <source>Saved</source>
        <translation>Gespart</translation>
    </message>
    <message>
        <source>Share of the bytes before</source>
        <translation>Anteil der Bytes vorher</translation>
    </message>
    <message>
        <source>Precision-transition matrix</source>
        <translation>Matrix der Genauigkeitsübergänge</translation>
    </message>
    <message>
        <source>Colour scale</source>
        <translation>Farbskala</translation>
    </message>
    <message>
        <source>Sensitivity of every layer to every scheme</source>
        <translation>Empfindlichkeit jeder Schicht für jedes Schema</translation>
    </message>
    <message>
        <source>All layers</source>
        <translation>Alle Schichten</translation>
    </message>
    <message>
        <source>All layers, each line the worst of those that it stands for; click or drag to go there</source>
        <translation>Alle Schichten, jede Linie die schlechteste von denen, für die sie steht; klicken oder ziehen, um dorthin zu gehen</translation>
    </message>
    <message>
        <source>Wheel, + and −: zoom all; arrow keys: pan; 0 or double click: everything; click: that layer</source>
        <translation>Rad, + und −: alle zoomen; Pfeiltasten: verschieben; 0 oder Doppelklick: alles; Klick: diese Schicht</translation>
    </message>
    <message>
        <source>&amp;Copy the Picture</source>
        <translation>Bild &amp;kopieren</translation>
    </message>
    <message>
        <source>Copy the &amp;Numbers</source>
        <translation>&amp;Zahlen kopieren</translation>
    </message>
    <message>
        <source>A short tour</source>
        <translation>Ein kurzer Rundgang</translation>
    </message>
    <message>
        <source>About</source>
        <translation>Über das Programm</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>Befehle</translation>
    </message>
    <message>
        <source>Report a problem</source>
        <translation>Ein Problem melden</translation>
    </message>
    <message>
        <source>waiting for an estimate to end</source>
        <translation>wartet auf das Ende einer Schätzung</translation>
    </message>
    <message>
        <source>the batch size is {n}; it must be at least 1</source>
        <translation>die Batchgröße ist {n}; sie muss mindestens 1 sein</translation>
    </message>
    <message>
        <source>{n} samples were asked for; at least 1 is needed</source>
        <translation>{n} Beispiele sind verlangt; mindestens 1 ist nötig</translation>
    </message>
    <message>
        <source>the sequence length is {n} tokens, the model takes {w}</source>
        <translation>das Fenster hat {n} Token, das Modell nimmt {w}</translation>
    </message>
    <message>
        <source>exactly {n}</source>
        <translation>genau {n}</translation>
    </message>
    <message>
        <source>at least {n}</source>
        <translation>mindestens {n}</translation>
    </message>
    <message>
        <source>{} holds {w}, the model takes token ids; give a text file or token windows</source>
        <translation>{} enthält {w}, das Modell nimmt Token-Nummern; eine Textdatei oder Fenster von Token angeben</translation>
    </message>
    <message>
        <source>{} holds images, the model takes sounds; give a folder or a table of sounds</source>
        <translation>{} enthält Bilder, das Modell nimmt Töne; einen Ordner oder eine Tabelle von Tönen angeben</translation>
    </message>
    <message>
        <source>{} holds no sample; give a file with more data, or a smaller sequence length</source>
        <translation>{} enthält kein Beispiel; eine Datei mit mehr Daten oder ein kleineres Fenster angeben</translation>
    </message>
    <message>
        <source>{} holds no sample for its calibration half; give a file with more data, or a smaller sequence length</source>
        <translation>{} enthält kein Beispiel für die Hälfte zum Kalibrieren; eine Datei mit mehr Daten oder ein kleineres Fenster angeben</translation>
    </message>
    <message>
        <source>{} holds no sample for its evaluation half; give a file with more data, or a smaller sequence length</source>
        <translation>{} enthält kein Beispiel für die Hälfte zum Bewerten; eine Datei mit mehr Daten oder ein kleineres Fenster angeben</translation>
    </message>
    <message>
        <source>{} holds NaN or infinite values; give finite inputs</source>
        <translation>{} enthält NaN oder unendliche Werte; endliche Eingaben angeben</translation>
    </message>
    <message>
        <source>{} holds token ids from {n} to {n}, the model knows {}; give data made with the model's tokenizer</source>
        <translation>{} enthält Token-Nummern von {n} bis {n}, das Modell kennt {}; Daten aus dem Tokenizer des Modells angeben</translation>
    </message>
    <message>
        <source>the data {} does not exist; expected {w}</source>
        <translation>die Daten {} gibt es nicht; erwartet wird {w}</translation>
    </message>
    <message>
        <source>{} is data of an unknown kind ({w}); expected {w}</source>
        <translation>{} sind Daten unbekannter Art ({w}); erwartet wird {w}</translation>
    </message>
    <message>
        <source>no suffix</source>
        <translation>keine Endung</translation>
    </message>
    <message>
        <source>{} is a single image; give the folder of images</source>
        <translation>{} ist ein einzelnes Bild; den Ordner der Bilder angeben</translation>
    </message>
    <message>
        <source>{} holds no {w} data; expected {} or the like in it</source>
        <translation>{} enthält keine Daten für {w}; erwartet wird darin {} oder Ähnliches</translation>
    </message>
    <message>
        <source>{} has no column {}; its columns are {} (--column)</source>
        <translation>{} hat keine Spalte {}; die Spalten sind {} (--column)</translation>
    </message>
    <message>
        <source>{}: which column is meant? The columns are {} (--column)</source>
        <translation>{}: welche Spalte ist gemeint? Die Spalten sind {} (--column)</translation>
    </message>
    <message>
        <source>{} has no file with text in it; give at least one</source>
        <translation>{} hat keine Datei mit Text; mindestens eine angeben</translation>
    </message>
    <message>
        <source>{} is text, but the model does not take token ids; give images or arrays</source>
        <translation>{} ist Text, aber das Modell nimmt keine Token-Nummern; Bilder oder Arrays angeben</translation>
    </message>
    <message>
        <source>{} cannot be read as UTF-8 text: {}</source>
        <translation>{} ist nicht als UTF-8-Text zu lesen: {}</translation>
    </message>
    <message>
        <source>{} is empty; give a text</source>
        <translation>{} ist leer; einen Text angeben</translation>
    </message>
    <message>
        <source>{} is text, but the model has no tokenizer; put tokenizer.json into its folder, or give token windows (.npy)</source>
        <translation>{} ist Text, aber das Modell hat keinen Tokenizer; tokenizer.json in seinen Ordner legen oder Fenster von Token (.npy) angeben</translation>
    </message>
    <message>
        <source>the stride is {n} tokens; windows of {n} allow {n} to {n}</source>
        <translation>der Schritt ist {n} Token; Fenster von {n} erlauben {n} bis {n}</translation>
    </message>
    <message>
        <source>{}: there is no option {}; give {}</source>
        <translation>{}: die Option {} gibt es nicht; möglich sind {}</translation>
    </message>
    <message>
        <source>the labels are {n} to {n}, the model has the classes {n} to {n}; give labels of this model's classes</source>
        <translation>die Labels sind {n} bis {n}, das Modell hat die Klassen {n} bis {n}; Labels der Klassen dieses Modells angeben</translation>
    </message>
    <message>
        <source>a text file, a table (.jsonl, .json, .csv, .parquet, .arrow, .feather), a .npy/.npz/.pt/.safetensors file of arrays, a folder of texts, of sounds or of images in class folders, or a folder with calibration.* and evaluation.*</source>
        <translation>eine Textdatei, eine Tabelle (.jsonl, .json, .csv, .parquet, .arrow, .feather), eine Datei von Arrays (.npy/.npz/.pt/.safetensors), ein Ordner von Texten, von Tönen oder von Bildern in Ordnern ihrer Klassen, oder ein Ordner mit calibration.* und evaluation.*</translation>
    </message>
    <message>
        <source>&amp;Logarithmic</source>
        <translation>&amp;Logarithmisch</translation>
    </message>
    <message>
        <source>Show &amp;All</source>
        <translation>&amp;Alles zeigen</translation>
    </message>
    <message>
        <source>save it to keep it</source>
        <translation>zum Behalten speichern</translation>
    </message>
    <message>
        <source>The recovery copy could not be written</source>
        <translation>Die Sicherungskopie ließ sich nicht schreiben</translation>
    </message>
    <message>
        <source>The newest edits could not be recovered</source>
        <translation>Die neuesten Änderungen ließen sich nicht wiederherstellen</translation>
    </message>
    <message>
        <source>Co&amp;py the Details</source>
        <translation>&amp;Einzelheiten kopieren</translation>
    </message>
    <message>
        <source>Otherwise, unsaved changes are lost.</source>
        <translation>Sonst gehen nicht gespeicherte Änderungen verloren.</translation>
    </message>
    <message>
        <source>Run this Python file?</source>
        <translation>Diese Python-Datei ausführen?</translation>
    </message>
    <message>
        <source>Choose a path</source>
        <translation>Pfad wählen</translation>
    </message>
    <message>
        <source>&amp;File…</source>
        <translation>&amp;Datei…</translation>
    </message>
    <message>
        <source>F&amp;older…</source>
        <translation>&amp;Ordner…</translation>
    </message>
    <message>
        <source>Path</source>
        <translation>Pfad</translation>
    </message>
    <message>
        <source>User guide</source>
        <translation>Handbuch</translation>
    </message>
    <message>
        <source>Find in the guide</source>
        <translation>Im Handbuch suchen</translation>
    </message>
    <message>
        <source>Co&amp;py</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>The whole report</source>
        <translation>Der ganze Bericht</translation>
    </message>
    <message>
        <source>Names help to find the cause, but may identify you</source>
        <translation>Namen helfen, eine Ursache zu finden, und verraten etwas über Sie</translation>
    </message>
    <message>
        <source>&amp;Save the Archive…</source>
        <translation>Archiv &amp;speichern…</translation>
    </message>
    <message>
        <source>This is all that the archive will hold. Nothing is sent: you send the file yourself.</source>
        <translation>Das ist alles, was das Archiv enthalten wird. Nichts wird gesendet: Sie senden die Datei selbst.</translation>
    </message>
    <message>
        <source>Quantization Workbench</source>
        <translation>Quantization Workbench</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>Matching commands</source>
        <translation>Passende Befehle</translation>
    </message>
    <message>
        <source>Model F&amp;older…</source>
        <translation>Modell&amp;ordner…</translation>
    </message>
    <message>
        <source>Model &amp;File…</source>
        <translation>Modell&amp;datei…</translation>
    </message>
    <message>
        <source>Recent files</source>
        <translation>Zuletzt geöffnet</translation>
    </message>
    <message>
        <source>What is the model for?</source>
        <translation>Wofür ist das Modell?</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>Wiederholen</translation>
    </message>
    <message>
        <source>Progress of the running job</source>
        <translation>Fortschritt des laufenden Auftrags</translation>
    </message>
    <message>
        <source>Share of the running job that is done</source>
        <translation>Erledigter Anteil des laufenden Auftrags</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Size of the whole model under the plan, compared with floating point</source>
        <translation>Größe des ganzen Modells unter dem Plan, verglichen mit Gleitkomma</translation>
    </message>
    <message>
        <source>Bits per weight, scales and zero points included: of the layers that are searched or quantized, and of the whole model, embeddings and unquantized tensors included</source>
        <translation>Bits je Gewicht, Skalen und Nullpunkte eingeschlossen: der Schichten, die gesucht oder quantisiert werden, und des ganzen Modells samt Einbettungen und nicht quantisierten Tensoren</translation>
    </message>
    <message>
        <source>Where models run, and what they compute in; click to choose</source>
        <translation>Wo Modelle laufen und worin sie rechnen; klicken, um zu wählen</translation>
    </message>
    <message>
        <source>the plan does not fit the model</source>
        <translation>der Plan passt nicht zum Modell</translation>
    </message>
    <message>
        <source>Copy the &amp;Table</source>
        <translation>&amp;Tabelle kopieren</translation>
    </message>
    <message>
        <source>Copy the &amp;Picture</source>
        <translation>Bild kop&amp;ieren</translation>
    </message>
    <message>
        <source>Copy the C&amp;ell</source>
        <translation>&amp;Zelle kopieren</translation>
    </message>
    <message>
        <source>Copy the &amp;Rows</source>
        <translation>Z&amp;eilen kopieren</translation>
    </message>
    <message>
        <source>The engine process ended</source>
        <translation>Der Rechenprozess ist beendet</translation>
    </message>
    <message>
        <source>The engine process is running again</source>
        <translation>Der Rechenprozess läuft wieder</translation>
    </message>
    <message>
        <source>Nothing to calibrate</source>
        <translation>Nichts zu kalibrieren</translation>
    </message>
    <message>
        <source>Nothing opened</source>
        <translation>Nichts geöffnet</translation>
    </message>
    <message>
        <source>several files were dropped; drop one</source>
        <translation>mehrere Dateien wurden abgelegt; nur eine ablegen</translation>
    </message>
    <message>
        <source>the program that it came from did not say which file it is; drop it again</source>
        <translation>das Programm, aus dem sie kommt, hat nicht gesagt, welche Datei es ist; bitte noch einmal ablegen</translation>
    </message>
    <message>
        <source>it is not on this computer; save it first</source>
        <translation>das liegt nicht auf diesem Rechner; es zuerst speichern</translation>
    </message>
    <message>
        <source>KL to floating point</source>
        <translation>KL zum Gleitkommamodell</translation>
    </message>
    <message>
        <source>, {:,} not finite</source>
        <translation>, {:,} nicht endlich</translation>
    </message>
    <message>
        <source>1 layer</source>
        <translation>1 Schicht</translation>
    </message>
    <message>
        <source>Algorithm</source>
        <translation>Algorithmus</translation>
    </message>
    <message>
        <source>Bits per weight, scales and zero points included</source>
        <translation>Bits je Gewicht, Skalen und Nullpunkte eingeschlossen</translation>
    </message>
    <message>
        <source>Blocks and layers in the order of the network</source>
        <translation>Blöcke und Schichten in der Reihenfolge des Netzes</translation>
    </message>
    <message>
        <source>Bytes of the weight under the plan</source>
        <translation>Bytes des Gewichts unter dem Plan</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>Cache</translation>
    </message>
    <message>
        <source>Choose the language of the window</source>
        <translation>Die Sprache des Fensters wählen</translation>
    </message>
    <message>
        <source>Formats</source>
        <translation>Formate</translation>
    </message>
    <message>
        <source>Histogram of the weight's values, lowest to highest; sorts by their variance</source>
        <translation>Histogramm der Werte des Gewichts, vom kleinsten zum größten; sortiert nach ihrer Varianz</translation>
    </message>
    <message>
        <source>How the KV cache stores the keys or values that the layer makes; double-click to change it</source>
        <translation>Wie der KV-Cache die Keys oder Values der Schicht speichert; Doppelklick ändert es</translation>
    </message>
    <message>
        <source>How the plan stores the layer's inputs; double-click to change it</source>
        <translation>Wie der Plan die Eingaben der Schicht speichert; Doppelklick ändert es</translation>
    </message>
    <message>
        <source>How the plan stores the weight; double-click or F2 to change it</source>
        <translation>Wie der Plan das Gewicht speichert; Doppelklick oder F2 ändert es</translation>
    </message>
    <message>
        <source>How the weight is rounded</source>
        <translation>Wie das Gewicht gerundet wird</translation>
    </message>
    <message>
        <source>Inputs</source>
        <translation>Eingaben</translation>
    </message>
    <message>
        <source>Outputs</source>
        <translation>Ausgaben</translation>
    </message>
    <message>
        <source>Langua&amp;ge…</source>
        <translation>&amp;Sprache…</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Loss that the best larger scheme saves for each MB that it adds; high: give this layer more bits</source>
        <translation>Verlust, den das beste größere Schema je zusätzlichem MB spart; hoch: dieser Schicht mehr Bits geben</translation>
    </message>
    <message>
        <source>Marked</source>
        <translation>Markiert</translation>
    </message>
    <message>
        <source>Measured</source>
        <translation>Gemessen</translation>
    </message>
    <message>
        <source>Measured KL of the chosen scheme in this layer alone; lower is better</source>
        <translation>Gemessene KL des gewählten Schemas in dieser Schicht allein; kleiner ist besser</translation>
    </message>
    <message>
        <source>Median kernel time of the layer under the plan, where it was timed</source>
        <translation>Median der Kernelzeit der Schicht unter dem Plan, wo sie gemessen wurde</translation>
    </message>
    <message>
        <source>Numbers have a decimal point in every language. The choice takes effect at the next start.</source>
        <translation>Zahlen haben in jeder Sprache einen Dezimalpunkt. Die Wahl gilt ab dem nächsten Start.</translation>
    </message>
    <message>
        <source>Saving</source>
        <translation>Ersparnis</translation>
    </message>
    <message>
        <source>Score of the chosen scheme for this layer alone; lower is better</source>
        <translation>Wert des gewählten Schemas für diese Schicht allein; kleiner ist besser</translation>
    </message>
    <message>
        <source>Shape of the weight as the model stores it</source>
        <translation>Form des Gewichts, wie das Modell es speichert</translation>
    </message>
    <message>
        <source>What changes between the two plans that are marked in Plan &gt; Plans</source>
        <translation>Was sich zwischen den zwei unter Plan &gt; Pläne markierten Plänen ändert</translation>
    </message>
    <message>
        <source>What the weight does</source>
        <translation>Was das Gewicht tut</translation>
    </message>
    <message>
        <source>Which histograms are shown: of the weights, the inputs, the outputs</source>
        <translation>Welche Histogramme gezeigt werden: der Gewichte, der Eingaben, der Ausgaben</translation>
    </message>
    <message>
        <source>Whose representable values stand below the axis, spread over the range</source>
        <translation>Wessen darstellbare Werte unter der Achse stehen, über den Bereich verteilt</translation>
    </message>
    <message>
        <source>With the &amp;names of my files</source>
        <translation>Mit den &amp;Namen meiner Dateien</translation>
    </message>
    <message>
        <source>not known with transforms</source>
        <translation>mit Transformationen nicht bekannt</translation>
    </message>
    <message>
        <source>the choice takes effect at the next start</source>
        <translation>die Wahl gilt ab dem nächsten Start</translation>
    </message>
    <message>
        <source>{:,} of {}</source>
        <translation>{:,} von {}</translation>
    </message>
    <message>
        <source>{:.3f} bits/weight ({:.2f} in all)</source>
        <translation>{:.3f} Bits/Gewicht ({:.2f} insgesamt)</translation>
    </message>
    <message>
        <source>{} {} to {}, σ {}</source>
        <translation>{} {} bis {}, σ {}</translation>
    </message>
    <message>
        <source>&amp;Outputs</source>
        <translation>&amp;Ausgaben</translation>
    </message>
    <message>
        <source>Weight range</source>
        <translation>Gewichtsbereich</translation>
    </message>
    <message>
        <source>Input range</source>
        <translation>Eingabebereich</translation>
    </message>
    <message>
        <source>Output range</source>
        <translation>Ausgabebereich</translation>
    </message>
    <message>
        <source>&amp;System</source>
        <translation>&amp;System</translation>
    </message>
    <message>
        <source>&amp;English</source>
        <translation>&amp;English</translation>
    </message>
    <message>
        <source>&amp;Deutsch</source>
        <translation>&amp;Deutsch</translation>
    </message>
    <message>
        <source>No scores yet.

Calibrate (F5), then compute the sensitivity (F6) to see what every scheme would cost every layer.
Weight error needs no calibration.</source>
        <translation>Noch keine Werte.

Kalibrieren (F5), dann die Empfindlichkeit berechnen (F6), um zu sehen, was jedes Schema jede Schicht kosten würde.
Der Gewichtsfehler braucht keine Kalibrierung.</translation>
    </message>
    <message>
        <source>The refined losses are the predicted ones with measured ones in place where decisions are close.
Compute the predicted KL (F6), then press Refine.</source>
        <translation>Die verfeinerten Verluste sind die vorhergesagten, durch gemessene ersetzt, wo Entscheidungen knapp sind.
Die vorhergesagte KL berechnen (F6), dann Verfeinern drücken.</translation>
    </message>
    <message>
        <source>What rounding inputs costs was not scored yet.
Compute it (F6) by the metric {title}.</source>
        <translation>Was das Runden der Eingaben kostet, wurde noch nicht bewertet.
Mit dem Maß {title} berechnen (F6).</translation>
    </message>
    <message>
        <source>What rounding keys and values costs was not scored yet.
Compute it (F6) by the metric {title}.</source>
        <translation>Was das Runden von Keys und Values kostet, wurde noch nicht bewertet.
Mit dem Maß {title} berechnen (F6).</translation>
    </message>
    <message>
        <source>{title} was not scored yet; compute it (F6), or choose another metric above.</source>
        <translation>{title} wurde noch nicht bewertet; berechnen (F6) oder oben ein anderes Maß wählen.</translation>
    </message>
    <message>
        <source>Time the plan's kernels (F9) to compare them with floating point.</source>
        <translation>Kernelzeiten des Plans messen (F9), um sie mit Gleitkomma zu vergleichen.</translation>
    </message>
    <message>
        <source>{n} layers</source>
        <translation>{n} Schichten</translation>
    </message>
    <message>
        <source>{n} layer</source>
        <translation>{n} Schicht</translation>
    </message>
    <message>
        <source>{n} layers, {n} tied</source>
        <translation>{n} Schichten, {n} gekoppelt</translation>
    </message>
    <message>
        <source>{n} questions answered</source>
        <translation>{n} Fragen beantwortet</translation>
    </message>
    <message>
        <source>{n} sample</source>
        <translation>{n} Beispiel</translation>
    </message>
    <message>
        <source>{n} samples</source>
        <translation>{n} Beispiele</translation>
    </message>
    <message>
        <source>{n} scheme</source>
        <translation>{n} Schema</translation>
    </message>
    <message>
        <source>{n} schemes</source>
        <translation>{n} Schemata</translation>
    </message>
    <message>
        <source>{n} plan</source>
        <translation>{n} Plan</translation>
    </message>
    <message>
        <source>{n} plans</source>
        <translation>{n} Pläne</translation>
    </message>
    <message>
        <source>{n} cell</source>
        <translation>{n} Zelle</translation>
    </message>
    <message>
        <source>{n} cells</source>
        <translation>{n} Zellen</translation>
    </message>
    <message>
        <source>{n} of {n} cells</source>
        <translation>{n} von {n} Zellen</translation>
    </message>
    <message>
        <source>{n} thread</source>
        <translation>{n} Thread</translation>
    </message>
    <message>
        <source>{n} threads</source>
        <translation>{n} Threads</translation>
    </message>
    <message>
        <source>{n} tensor</source>
        <translation>{n} Tensor</translation>
    </message>
    <message>
        <source>{n} tensors</source>
        <translation>{n} Tensoren</translation>
    </message>
    <message>
        <source>{n} position</source>
        <translation>{n} Position</translation>
    </message>
    <message>
        <source>{n} positions</source>
        <translation>{n} Positionen</translation>
    </message>
    <message>
        <source>{n} token</source>
        <translation>{n} Token</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} Token</translation>
    </message>
    <message>
        <source>{n} channel</source>
        <translation>{n} Kanal</translation>
    </message>
    <message>
        <source>{n} channels</source>
        <translation>{n} Kanäle</translation>
    </message>
    <message>
        <source>{n} outlier</source>
        <translation>{n} Ausreißer</translation>
    </message>
    <message>
        <source>{n} outliers</source>
        <translation>{n} Ausreißer</translation>
    </message>
    <message>
        <source>{n} more</source>
        <translation>{n} mehr</translation>
    </message>
    <message>
        <source>{} and {n} more</source>
        <translation>{} und {n} weitere</translation>
    </message>
    <message>
        <source>{n}× smaller</source>
        <translation>{n}× kleiner</translation>
    </message>
    <message>
        <source>{n}× of the size</source>
        <translation>{n}× so groß</translation>
    </message>
    <message>
        <source>the same</source>
        <translation>gleich</translation>
    </message>
    <message>
        <source>{n} whole model</source>
        <translation>{n} ganzes Modell</translation>
    </message>
    <message>
        <source>{} everywhere but in embeddings</source>
        <translation>überall {}, nur nicht in Einbettungen</translation>
    </message>
    <message>
        <source>{w} vs {} everywhere but in embeddings</source>
        <translation>{w} gegenüber {} überall, nur nicht in Einbettungen</translation>
    </message>
    <message>
        <source>one scheme everywhere but in embeddings</source>
        <translation>überall ein Schema, nur nicht in Einbettungen</translation>
    </message>
    <message>
        <source>Undone</source>
        <translation>Rückgängig gemacht</translation>
    </message>
    <message>
        <source>Redone</source>
        <translation>Wiederholt</translation>
    </message>
    <message>
        <source>Nothing to mark</source>
        <translation>Nichts zu markieren</translation>
    </message>
    <message>
        <source>save a plan first, then mark what later edits change</source>
        <translation>zuerst einen Plan speichern; danach lässt sich markieren, was spätere Änderungen anders machen</translation>
    </message>
    <message>
        <source>{} everywhere</source>
        <translation>überall {}</translation>
    </message>
    <message>
        <source>{w} vs {w}</source>
        <translation>{w} gegen {w}</translation>
    </message>
    <message>
        <source>{} of tensors</source>
        <translation>{} Tensoren</translation>
    </message>
    <message>
        <source>the same as {w}</source>
        <translation>gleich wie {w}</translation>
    </message>
    <message>
        <source>as saved</source>
        <translation>wie gespeichert</translation>
    </message>
    <message>
        <source>as uniform</source>
        <translation>wie einheitlich</translation>
    </message>
    <message>
        <source>{w} against {w}</source>
        <translation>{w} gegenüber {w}</translation>
    </message>
    <message>
        <source>{w} vs saved</source>
        <translation>{w} gegen gespeichert</translation>
    </message>
    <message>
        <source>{w} vs uniform</source>
        <translation>{w} gegen einheitlich</translation>
    </message>
    <message>
        <source>saved</source>
        <translation>gespeichert</translation>
    </message>
    <message>
        <source>uniform</source>
        <translation>einheitlich</translation>
    </message>
    <message>
        <source>{w} not timed</source>
        <translation>{w} nicht gemessen</translation>
    </message>
    <message>
        <source>{w} not scored</source>
        <translation>{w} nicht bewertet</translation>
    </message>
    <message>
        <source>In the colour of its points</source>
        <translation>In der Farbe seiner Punkte</translation>
    </message>
    <message>
        <source>{n}× as fast as floating point</source>
        <translation>{n}× so schnell wie Gleitkomma</translation>
    </message>
    <message>
        <source>{n}× as fast</source>
        <translation>{n}× so schnell</translation>
    </message>
    <message>
        <source>batch {n}</source>
        <translation>Batch {n}</translation>
    </message>
    <message>
        <source>{n} to {n}</source>
        <translation>{n} bis {n}</translation>
    </message>
    <message>
        <source>8 × bytes ÷ weights, scales and zero points included: over the layers that are searched or quantized; in the whole model, embeddings and all unquantized tensors count too.</source>
        <translation>8 × Bytes ÷ Gewichte, Skalen und Nullpunkte eingeschlossen: über die Schichten, die durchsucht oder quantisiert werden; im ganzen Modell zählen auch Einbettungen und alle nicht quantisierten Tensoren.</translation>
    </message>
    <message>
        <source>Sum of the scores of all layers' schemes, and of what their errors cost together; lower is better.</source>
        <translation>Summe der Werte der Schemata aller Schichten und dessen, was ihre Fehler zusammen kosten; kleiner ist besser.</translation>
    </message>
    <message>
        <source>From {w} of {}.</source>
        <translation>Aus {w} von {}.</translation>
    </message>
    <message>
        <source>The range holds the mean of other samples of the same data 95 times in 100.</source>
        <translation>Der Bereich enthält das Mittel anderer Beispiele derselben Daten in 95 von 100 Fällen.</translation>
    </message>
    <message>
        <source>Evaluate the plan (F8) to measure it.</source>
        <translation>Den Plan auswerten (F8), um ihn zu messen.</translation>
    </message>
    <message>
        <source>Divergence of the quantized model's outputs from the floating-point model's: the mean over {w} of {}.</source>
        <translation>Abweichung der Ausgaben des quantisierten Modells von denen des Gleitkommamodells: Mittel über {w} von {}.</translation>
    </message>
    <message>
        <source>The range is the 95 % bootstrap interval.</source>
        <translation>Der Bereich ist das 95-%-Bootstrap-Intervall.</translation>
    </message>
    <message>
        <source>Sum of the median times of the layers' kernels, one after another, at the smallest batch that was timed.</source>
        <translation>Summe der Median-Zeiten der Kernel aller Schichten nacheinander, beim kleinsten gemessenen Batch.</translation>
    </message>
    <message>
        <source>Sum of the median times of the layers' kernels, one after another, at the smallest batch that was timed. Time them with F9.</source>
        <translation>Summe der Median-Zeiten der Kernel aller Schichten nacheinander, beim kleinsten gemessenen Batch. F9 misst sie.</translation>
    </message>
    <message>
        <source>On {}.</source>
        <translation>Auf {}.</translation>
    </message>
    <message>
        <source>As the list of layers counts them; the tensor of a tied layer counts once, with the layer that owns it</source>
        <translation>Gezählt wie in der Liste der Schichten; der Tensor einer gekoppelten Schicht zählt einmal, bei der Schicht, der er gehört</translation>
    </message>
    <message>
        <source>current plan</source>
        <translation>aktueller Plan</translation>
    </message>
    <message>
        <source>within {n} bits per weight</source>
        <translation>mit {n} Bits je Gewicht</translation>
    </message>
    <message>
        <source>per weight</source>
        <translation>je Gewicht</translation>
    </message>
    <message>
        <source>Rules of the plan</source>
        <translation>Regeln des Plans</translation>
    </message>
    <message>
        <source>A layer's exact name; a pattern with *, ? and [ ]; or re: and a regular expression</source>
        <translation>Der genaue Name einer Schicht; ein Muster mit *, ? und [ ]; oder re: und ein regulärer Ausdruck</translation>
    </message>
    <message>
        <source>Find the plan of the least {w} within the budget (F7)</source>
        <translation>Den Plan mit dem kleinsten Wert im Budget finden (F7): {w}</translation>
    </message>
    <message>
        <source>{}; the smallest possible with the scored schemes is {}</source>
        <translation>{}; mit den bewerteten Schemata geht es nur bis {}</translation>
    </message>
    <message>
        <source>Repaired {w}</source>
        <translation>{w} repariert</translation>
    </message>
    <message>
        <source>for {}: {} before, {} now</source>
        <translation>für {}: {} zuvor, {} jetzt</translation>
    </message>
    <message>
        <source>a search (F7) finds the best plan within the budget</source>
        <translation>eine Suche (F7) findet den besten Plan innerhalb des Budgets</translation>
    </message>
    <message>
        <source>Score (F6) tells what its schemes cost</source>
        <translation>Bewerten (F6) zeigt, was seine Schemata kosten</translation>
    </message>
    <message>
        <source>for {}</source>
        <translation>für {}</translation>
    </message>
    <message>
        <source>Add the rule {}</source>
        <translation>Regel {} hinzufügen</translation>
    </message>
    <message>
        <source>Move the rule {}</source>
        <translation>Regel {} verschieben</translation>
    </message>
    <message>
        <source>Remove the rule {}</source>
        <translation>Regel {} entfernen</translation>
    </message>
    <message>
        <source>Matches {}: {}</source>
        <translation>Passt auf {}: {}</translation>
    </message>
    <message>
        <source>{n} of {n}</source>
        <translation>{n} von {n}</translation>
    </message>
    <message>
        <source>Add the transform {}</source>
        <translation>Transformation {} hinzufügen</translation>
    </message>
    <message>
        <source>Move the transform {}</source>
        <translation>Transformation {} verschieben</translation>
    </message>
    <message>
        <source>Remove the transform {}</source>
        <translation>Transformation {} entfernen</translation>
    </message>
    <message>
        <source>Save the plan {}</source>
        <translation>Plan {} speichern</translation>
    </message>
    <message>
        <source>Use the plan {}</source>
        <translation>Plan {} verwenden</translation>
    </message>
    <message>
        <source>Delete {}</source>
        <translation>{} löschen</translation>
    </message>
    <message>
        <source>Use the plan of {} bits per weight</source>
        <translation>Den Plan mit {} Bits je Gewicht verwenden</translation>
    </message>
    <message>
        <source>Slide to {} bits per weight</source>
        <translation>Auf {} Bits je Gewicht schieben</translation>
    </message>
    <message>
        <source>{}: as it is</source>
        <translation>{}: wie es ist</translation>
    </message>
    <message>
        <source>Mobile ARM with dotprod and i8mm</source>
        <translation>Mobiles ARM mit dotprod und i8mm</translation>
    </message>
    <message>
        <source>x86 with AMX (and AVX-512 VNNI)</source>
        <translation>x86 mit AMX (und AVX-512 VNNI)</translation>
    </message>
    <message>
        <source>x86 with AVX-512 VNNI</source>
        <translation>x86 mit AVX-512 VNNI</translation>
    </message>
    <message>
        <source>Words of the name, kind or scheme; kind:linear; scheme:int4; re:layers\.[0-3]\.; worst 10 (by loss)</source>
        <translation>Wörter von Name, Art oder Schema; kind:linear; scheme:int4; re:layers\.[0-3]\.; worst 10 (nach Verlust)</translation>
    </message>
    <message>
        <source>tied to {}: one tensor, stored once</source>
        <translation>gekoppelt an {}: ein Tensor, einmal gespeichert</translation>
    </message>
    <message>
        <source>must share its scheme with {}</source>
        <translation>muss sein Schema teilen mit {}</translation>
    </message>
    <message>
        <source>kept in floating point unless a rule names it: {}</source>
        <translation>bleibt in Gleitkomma, wenn keine Regel es nennt: {}</translation>
    </message>
    <message>
        <source>costs most: {}</source>
        <translation>kostet am meisten: {}</translation>
    </message>
    <message>
        <source>holds NaN or infinite values</source>
        <translation>enthält NaN oder unendliche Werte</translation>
    </message>
    <message>
        <source>Kept in FP</source>
        <translation>In Gleitkomma</translation>
    </message>
    <message>
        <source>{n} experts were sent {} to {} tokens, expert {} the fewest</source>
        <translation>{n} Experten bekamen {} bis {} Token, Experte {} am wenigsten</translation>
    </message>
    <message>
        <source>{n} experts were sent {} tokens each</source>
        <translation>{n} Experten bekamen je {} Token</translation>
    </message>
    <message>
        <source>all experts were shown {} tokens</source>
        <translation>allen Experten wurden {} Token gezeigt</translation>
    </message>
    <message>
        <source>not a valid regular expression: {}</source>
        <translation>kein gültiger regulärer Ausdruck: {}</translation>
    </message>
    <message>
        <source>Copied {w} as a table</source>
        <translation>{w} als Tabelle kopiert</translation>
    </message>
    <message>
        <source>Scheme of the {w}</source>
        <translation>Schema: {w}</translation>
    </message>
    <message>
        <source>{} cannot run this: {w}</source>
        <translation>{} kann es so nicht ausführen: {w}</translation>
    </message>
    <message>
        <source>{w}: floating point and quantized</source>
        <translation>{w}: Gleitkomma und quantisiert</translation>
    </message>
    <message>
        <source>Top-1 agreement</source>
        <translation>Top-1-Übereinstimmung</translation>
    </message>
    <message>
        <source>Objects found</source>
        <translation>Gefundene Objekte</translation>
    </message>
    <message>
        <source>Share of the floating-point model's objects (probability of at least a half) that the quantized model finds too, with the same label and boxes that overlap by half or more, in %; higher is better</source>
        <translation>Anteil der Objekte des Gleitkommamodells (Wahrscheinlichkeit mindestens ein Halb), die auch das quantisierte Modell findet, mit derselben Klasse und Rahmen, die sich mindestens zur Hälfte decken, in %; größer ist besser</translation>
    </message>
    <message>
        <source>Perplexity</source>
        <translation>Perplexität</translation>
    </message>
    <message>
        <source>Sum of the layers' predicted losses; a dash where a layer is not scored</source>
        <translation>Summe der vorhergesagten Verluste der Schichten; ein Strich, wo eine Schicht nicht bewertet ist</translation>
    </message>
    <message>
        <source>Predicted loss of the whole plan: the sum and what layers are predicted to cost each other</source>
        <translation>Vorhergesagter Verlust des ganzen Plans: die Summe und was Schichten einander voraussichtlich kosten</translation>
    </message>
    <message>
        <source>Sum of the losses measured with one layer quantized at a time</source>
        <translation>Summe der Verluste, gemessen mit je einer quantisierten Schicht</translation>
    </message>
    <message>
        <source>Loss measured with the whole plan's weights quantized</source>
        <translation>Verlust, gemessen mit allen quantisierten Gewichten des Plans</translation>
    </message>
    <message>
        <source>Together over predicted together: what predictions near this plan are to be multiplied with; fitted to this measurement, so it does not test the prediction</source>
        <translation>Zusammen durch vorhergesagt zusammen: womit Vorhersagen nahe diesem Plan zu multiplizieren sind; an diese Messung angepasst, also keine Probe der Vorhersage</translation>
    </message>
    <message>
        <source>One by one</source>
        <translation>Einzeln</translation>
    </message>
    <message>
        <source>The first plan</source>
        <translation>Der erste Plan</translation>
    </message>
    <message>
        <source>The plan that it is compared with</source>
        <translation>Der Plan, mit dem verglichen wird</translation>
    </message>
    <message>
        <source>{w}; its value minus the other's is shown</source>
        <translation>{w}; gezeigt wird sein Wert minus dem des anderen</translation>
    </message>
    <message>
        <source>Kullback-Leibler divergence of the quantized model's answers from the floating-point model's, in nats per token or sample; 0 is equal, lower is better</source>
        <translation>Kullback-Leibler-Divergenz der Antworten des quantisierten Modells von denen des Gleitkommamodells, in nats je Token oder Beispiel; 0 ist gleich, kleiner ist besser</translation>
    </message>
    <message>
        <source>Share of tokens or samples for which both models give the same most likely answer, in %; higher is better</source>
        <translation>Anteil der Token oder Beispiele, für die beide Modelle dieselbe wahrscheinlichste Antwort geben, in %; größer ist besser</translation>
    </message>
    <message>
        <source>Exponential of the mean loss per token: the number of equally likely tokens that would be as uncertain; no unit, lower is better</source>
        <translation>Exponential des mittleren Verlusts je Token: die Zahl gleich wahrscheinlicher Token, die ebenso ungewiss wären; ohne Einheit, kleiner ist besser</translation>
    </message>
    <message>
        <source>{w}: the layers' losses add up: together {} {w} ({} to {}), one by one {}, predicted {w} ({w})</source>
        <translation>{w}: die Verluste der Schichten addieren sich: zusammen {} {w} ({} bis {}), einzeln {}, vorhergesagt {w} ({w})</translation>
    </message>
    <message>
        <source>the {n} most changed, {n} among them</source>
        <translation>die {n} am stärksten geänderten, darunter {n}</translation>
    </message>
    <message>
        <source>the {n} most changed, {w} among them</source>
        <translation>die {n} am stärksten geänderten, darunter {w}</translation>
    </message>
    <message>
        <source>Audit of “{w}”</source>
        <translation>Prüfung von „{w}“</translation>
    </message>
    <message>
        <source>{w} ({n} bits, {})</source>
        <translation>{w} ({n} Bits, {})</translation>
    </message>
    <message>
        <source>bits per weight{}</source>
        <translation>Bits je Gewicht{}</translation>
    </message>
    <message>
        <source>Metric of the x axis</source>
        <translation>Maß der x-Achse</translation>
    </message>
    <message>
        <source>Metric of the y axis</source>
        <translation>Maß der y-Achse</translation>
    </message>
    <message>
        <source>rank agreement {n} over {w}</source>
        <translation>Rangübereinstimmung {n} über {w}</translation>
    </message>
    <message>
        <source>lost in the damaged file: {}: {w}</source>
        <translation>in der beschädigten Datei verloren: {}: {w}</translation>
    </message>
    <message>
        <source>its values do not match their checksum</source>
        <translation>die Werte passen nicht zu ihrer Prüfsumme</translation>
    </message>
    <message>
        <source>its attributes do not match their checksum</source>
        <translation>die Angaben passen nicht zu ihrer Prüfsumme</translation>
    </message>
    <message>
        <source>Evaluation</source>
        <translation>Auswertung</translation>
    </message>
    <message>
        <source>&amp;Recover</source>
        <translation>&amp;Wiederherstellen</translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation>S&amp;päter</translation>
    </message>
    <message>
        <source>Un&amp;lock</source>
        <translation>&amp;Freigeben</translation>
    </message>
    <message>
        <source>its structure is broken</source>
        <translation>der Aufbau ist zerstört</translation>
    </message>
    <message>
        <source>rank agreement {n} over {w}, {n} of them drawn</source>
        <translation>Rangübereinstimmung {n} über {w}, {n} davon gezeichnet</translation>
    </message>
    <message>
        <source>rank agreement {n} over {w}; ◆ evaluated plans</source>
        <translation>Rangübereinstimmung {n} über {w}; ◆ ausgewertete Pläne</translation>
    </message>
    <message>
        <source>rank agreement {} over {w}{w}{w}</source>
        <translation>Rangübereinstimmung {} über {w}{w}{w}</translation>
    </message>
    <message>
        <source>{w}; Enter uses it</source>
        <translation>{w}; Enter verwendet ihn</translation>
    </message>
    <message>
        <source>No front can be drawn: {w}</source>
        <translation>Keine Front kann gezeichnet werden: {w}</translation>
    </message>
    <message>
        <source>Time at batch {n}</source>
        <translation>Zeit bei Batch {n}</translation>
    </message>
    <message>
        <source>Time every scheme of the table at every shape; only what was timed takes part</source>
        <translation>Jedes Schema der Tabelle in jeder Form messen; nur Gemessenes nimmt teil</translation>
    </message>
    <message>
        <source>{}: {} saves {} and adds a loss of {}</source>
        <translation>{}: {} spart {} und kostet einen Verlust von {}</translation>
    </message>
    <message>
        <source>{} would take {} more and avoid {}: {} for each kB, more than the {} that one buys elsewhere</source>
        <translation>{} nähme {} mehr und vermiede {}: {} je kB, mehr als die {}, die eines anderswo bringt</translation>
    </message>
    <message>
        <source>{} would take {} more and avoid {}: {} for each kB, less than the {} that one buys elsewhere</source>
        <translation>{} nähme {} mehr und vermiede {}: {} je kB, weniger als die {}, die eines anderswo bringt</translation>
    </message>
    <message>
        <source>{} would take {} more and avoid {}: {} for each kB, as much as one buys elsewhere</source>
        <translation>{} nähme {} mehr und vermiede {}: {} je kB, so viel, wie eines anderswo bringt</translation>
    </message>
    <message>
        <source>No larger scheme avoids any loss.</source>
        <translation>Kein größeres Schema vermeidet einen Verlust.</translation>
    </message>
    <message>
        <source>The next {} take {w} from {} to {} and avoid {}.</source>
        <translation>Die nächsten {} bringen {w} von {} auf {} und vermeiden {}.</translation>
    </message>
    <message>
        <source>{} would save {} more and add {}: {} for each kB</source>
        <translation>{} sparte {} mehr und kostete {}: {} je kB</translation>
    </message>
    <message>
        <source>{}: measured {} {} ({} to {}), predicted {}</source>
        <translation>{}: gemessen {} {} ({} bis {}), vorhergesagt {}</translation>
    </message>
    <message>
        <source>loss ({})</source>
        <translation>Verlust ({})</translation>
    </message>
    <message>
        <source>{w}: {n} dB at the output; line: measured</source>
        <translation>{w}: {n} dB am Ausgang; Linie: gemessen</translation>
    </message>
    <message>
        <source>{w}: {n} dB at the output</source>
        <translation>{w}: {n} dB am Ausgang</translation>
    </message>
    <message>
        <source>{w}, dashes: predicted</source>
        <translation>{w}, Striche: vorhergesagt</translation>
    </message>
    <message>
        <source>line: measured, dashes: predicted</source>
        <translation>Linie: gemessen, Striche: vorhergesagt</translation>
    </message>
    <message>
        <source>line: measured</source>
        <translation>Linie: gemessen</translation>
    </message>
    <message>
        <source>{w}; score the weight error (F6) and measure again to see which layers it comes from</source>
        <translation>{w}; den Gewichtsfehler bewerten (F6) und erneut messen, um zu sehen, aus welchen Schichten er kommt</translation>
    </message>
    <message>
        <source>From {n} to {n} samples the ranges of {n} of {n} tensors moved by more than {}: enough</source>
        <translation>Von {n} bis {n} Beispielen änderten sich die Bereiche von {n} von {n} Tensoren um mehr als {}: genug</translation>
    </message>
    <message>
        <source>farthest from the evaluation data: the output of {} by {n} standard deviations</source>
        <translation>am weitesten von den Auswertungsdaten: die Ausgabe von {} um {n} Standardabweichungen</translation>
    </message>
    <message>
        <source>{n} samples for calibration</source>
        <translation>{n} Beispiele zum Kalibrieren</translation>
    </message>
    <message>
        <source>{n} for evaluation</source>
        <translation>{n} zum Auswerten</translation>
    </message>
    <message>
        <source>{} of the vocabulary was seen</source>
        <translation>{} des Vokabulars kamen vor</translation>
    </message>
    <message>
        <source>{} of the evaluation's tokens have an id that was seen</source>
        <translation>{} der Token der Auswertung haben eine Nummer, die vorkam</translation>
    </message>
    <message>
        <source>{} of its samples have a length within those seen</source>
        <translation>{} ihrer Beispiele haben eine Länge unter denen, die vorkamen</translation>
    </message>
    <message>
        <source>Share of the tokens that reach {n} standard deviations; images' pixels are not counted</source>
        <translation>Anteil der Token, die {n} Standardabweichungen erreichen; Pixel von Bildern zählen nicht</translation>
    </message>
    <message>
        <source>Check the data first (Alt+C)</source>
        <translation>Zuerst die Daten prüfen (Alt+C)</translation>
    </message>
    <message>
        <source>{n} to {n} of {n} · {}</source>
        <translation>{n} bis {n} von {n} · {}</translation>
    </message>
    <message>
        <source>{}: {w}, {w} of at least {n} × the median</source>
        <translation>{}: {w}, {w} von mindestens {n} × dem Median</translation>
    </message>
    <message>
        <source>{w} of at least {n} × the median</source>
        <translation>{w} von mindestens {n} × dem Median</translation>
    </message>
    <message>
        <source>Channels {n} to {n}: {} to {}, {} of the channels' squared magnitudes{}</source>
        <translation>Kanäle {n} bis {n}: {} bis {}, {} der quadrierten Beträge der Kanäle{}</translation>
    </message>
    <message>
        <source>Channels {n} to {n}: {} to {}, {} of the channels' squared magnitudes</source>
        <translation>Kanäle {n} bis {n}: {} bis {}, {} der quadrierten Beträge der Kanäle</translation>
    </message>
    <message>
        <source>Channels {n} to {n}: {} to {}, {} of the channels' squared magnitudes, {} of the error</source>
        <translation>Kanäle {n} bis {n}: {} bis {}, {} der quadrierten Beträge der Kanäle, {} des Fehlers</translation>
    </message>
    <message>
        <source>Shares {w} under {}</source>
        <translation>Anteile {w} mit {}</translation>
    </message>
    <message>
        <source>the columns of {} do not divide into channels</source>
        <translation>die Spalten von {} lassen sich nicht in Kanäle teilen</translation>
    </message>
    <message>
        <source>In the region</source>
        <translation>Im Bereich</translation>
    </message>
    <message>
        <source>against {} ({w}): {w}</source>
        <translation>gegenüber {} ({w}): {w}</translation>
    </message>
    <message>
        <source>the same weights</source>
        <translation>dieselben Gewichte</translation>
    </message>
    <message>
        <source>other weights</source>
        <translation>andere Gewichte</translation>
    </message>
    <message>
        <source>{n} layers of {n} differ</source>
        <translation>{n} Schichten von {n} verschieden</translation>
    </message>
    <message>
        <source>{n} layer of {n} differs</source>
        <translation>{n} Schicht von {n} verschieden</translation>
    </message>
    <message>
        <source>The plans treat the layer differently</source>
        <translation>Die Pläne behandeln die Schicht verschieden</translation>
    </message>
    <message>
        <source>The 95 % intervals do not overlap</source>
        <translation>Die 95-%-Intervalle überlappen nicht</translation>
    </message>
    <message>
        <source>Loss of the plan</source>
        <translation>Verlust des Plans</translation>
    </message>
    <message>
        <source>Fingerprint</source>
        <translation>Fingerabdruck</translation>
    </message>
    <message>
        <source>Locked layers</source>
        <translation>Gesperrte Schichten</translation>
    </message>
    <message>
        <source>Calibration</source>
        <translation>Kalibrierung</translation>
    </message>
    <message>
        <source>{w} refused</source>
        <translation>{w} abgelehnt</translation>
    </message>
    <message>
        <source>Copy the command line that writes the same; the session is saved first, whose plan it writes</source>
        <translation>Die Befehlszeile kopieren, die dasselbe schreibt; zuerst wird die Sitzung gespeichert, deren Plan sie schreibt</translation>
    </message>
    <message>
        <source>Runs the plan's file in the runtime that it is for: its answers beside the evaluation, speed, memory.</source>
        <translation>Führt die Datei des Plans in der Laufzeit aus, für die sie ist: ihre Antworten neben der Auswertung, Tempo, Speicher.</translation>
    </message>
    <message>
        <source>{}: {} quantizes no {w} layers</source>
        <translation>{}: {} quantisiert keine Schichten der Art {w}</translation>
    </message>
    <message>
        <source>{}: they run as one matrix and must share one scheme</source>
        <translation>{}: sie laufen als eine Matrix und müssen ein Schema teilen</translation>
    </message>
    <message>
        <source>{} and {n} more: they run as one matrix and must share one scheme</source>
        <translation>{} und {n} weitere: sie laufen als eine Matrix und müssen ein Schema teilen</translation>
    </message>
    <message>
        <source>{} reads tables of positions, of token types and gates of experts in float32 alone</source>
        <translation>{} liest Tabellen von Positionen und Tokenarten und Gatter von Experten nur in float32</translation>
    </message>
    <message>
        <source>{} is given no network of the architecture {} yet, only of {}</source>
        <translation>{} bekommt noch keine Netze der Architektur {}, nur solche der Architekturen {}</translation>
    </message>
    <message>
        <source>{} reads the config.json and the tokenizer of a Hugging Face folder; {} has none</source>
        <translation>{} liest die config.json und den Tokenizer eines Hugging-Face-Ordners; {} hat keine</translation>
    </message>
    <message>
        <source>{} has no network to write: {w}</source>
        <translation>{} hat kein Netz, das geschrieben werden könnte: {w}</translation>
    </message>
    <message>
        <source>{} only generates text; {} does not: its outputs are {w}</source>
        <translation>{} erzeugt nur Text; {} nicht: seine Ausgaben sind {w}</translation>
    </message>
    <message>
        <source>embeddings</source>
        <translation>Einbettungen</translation>
    </message>
    <message>
        <source>classes</source>
        <translation>Klassen</translation>
    </message>
    <message>
        <source>classes of tokens</source>
        <translation>Klassen von Token</translation>
    </message>
    <message>
        <source>objects</source>
        <translation>Objekte</translation>
    </message>
    <message>
        <source>classes of positions</source>
        <translation>Klassen von Positionen</translation>
    </message>
    <message>
        <source>not used by the plan</source>
        <translation>vom Plan nicht verwendet</translation>
    </message>
    <message>
        <source>the plan leaves this input in floating point</source>
        <translation>der Plan lässt diese Eingabe in Gleitkomma</translation>
    </message>
    <message>
        <source>clips {} · RMS error {} · SQNR {} dB as {}, symmetric: ±{} ({w})</source>
        <translation>kappt {} · RMS-Fehler {} · SQNR {} dB als {}, symmetrisch: ±{} ({w})</translation>
    </message>
    <message>
        <source>clips {} · RMS error {} · SQNR {} dB as {}, symmetric: ±{}</source>
        <translation>kappt {} · RMS-Fehler {} · SQNR {} dB als {}, symmetrisch: ±{}</translation>
    </message>
    <message>
        <source>clips {} · RMS error {} · SQNR {} dB as {}</source>
        <translation>kappt {} · RMS-Fehler {} · SQNR {} dB als {}</translation>
    </message>
    <message>
        <source>clips {} · RMS error {} · SQNR {} dB</source>
        <translation>kappt {} · RMS-Fehler {} · SQNR {} dB</translation>
    </message>
    <message>
        <source>clips {}</source>
        <translation>kappt {}</translation>
    </message>
    <message>
        <source>RMS error {}</source>
        <translation>RMS-Fehler {}</translation>
    </message>
    <message>
        <source>SQNR {} dB as {}, symmetric: ±{} ({w})</source>
        <translation>SQNR {} dB als {}, symmetrisch: ±{} ({w})</translation>
    </message>
    <message>
        <source>SQNR {} dB as {} ({w})</source>
        <translation>SQNR {} dB als {} ({w})</translation>
    </message>
    <message>
        <source>SQNR {} dB as {}, symmetric: ±{}</source>
        <translation>SQNR {} dB als {}, symmetrisch: ±{}</translation>
    </message>
    <message>
        <source>SQNR {} dB as {}</source>
        <translation>SQNR {} dB als {}</translation>
    </message>
    <message>
        <source>loss {} {}</source>
        <translation>Verlust {} {}</translation>
    </message>
    <message>
        <source>Share of the {w} outside the range; root mean square of the rounding error, in the tensor's own unit; ratio of signal to quantization noise in decibels, higher is better</source>
        <translation>Anteil außerhalb des Bereichs ({w}); quadratisches Mittel des Rundungsfehlers, in der Einheit des Tensors; Verhältnis von Signal zu Quantisierungsrauschen in Dezibel, größer ist besser</translation>
    </message>
    <message>
        <source>Share of the {w} outside the range; root mean square of the rounding error, in the tensor's own unit; ratio of signal to quantization noise in decibels, higher is better ({w})</source>
        <translation>Anteil außerhalb des Bereichs ({w}); quadratisches Mittel des Rundungsfehlers, in der Einheit des Tensors; Verhältnis von Signal zu Quantisierungsrauschen in Dezibel, größer ist besser ({w})</translation>
    </message>
    <message>
        <source>Histogram of the weights</source>
        <translation>Histogramm der Gewichte</translation>
    </message>
    <message>
        <source>Histogram of the inputs</source>
        <translation>Histogramm der Eingaben</translation>
    </message>
    <message>
        <source>Histogram of the outputs</source>
        <translation>Histogramm der Ausgaben</translation>
    </message>
    <message>
        <source>Histograms of the selected layers</source>
        <translation>Histogramme der gewählten Schichten</translation>
    </message>
    <message>
        <source>Lowest value that is represented</source>
        <translation>Kleinster dargestellter Wert</translation>
    </message>
    <message>
        <source>Highest value</source>
        <translation>Größter Wert</translation>
    </message>
    <message>
        <source>{w}; drag the lines in the plot, or type a number and press Enter</source>
        <translation>{w}; die Linien ziehen, oder eine Zahl eingeben und Enter drücken</translation>
    </message>
    <message>
        <source>Counts on a logarithmic scale, so that the tails can be seen</source>
        <translation>Anzahlen logarithmisch, damit die Ausläufer zu sehen sind</translation>
    </message>
    <message>
        <source>Not taken: {w}</source>
        <translation>Nicht übernommen: {w}</translation>
    </message>
    <message>
        <source>Outputs of {} ({}): keys before their rotation by position, and values</source>
        <translation>Ausgaben von {} ({}): Keys vor ihrer Drehung nach der Position, und Values</translation>
    </message>
    <message>
        <source>Outputs of {}: keys before rotation, and values</source>
        <translation>Ausgaben von {}: Keys vor der Drehung, und Values</translation>
    </message>
    <message>
        <source>Outputs of {}</source>
        <translation>Ausgaben von {}</translation>
    </message>
    <message>
        <source>Weights of {w}</source>
        <translation>Gewichte von {w}</translation>
    </message>
    <message>
        <source>Inputs of {w}</source>
        <translation>Eingaben von {w}</translation>
    </message>
    <message>
        <source>Keys and values</source>
        <translation>Keys und Values</translation>
    </message>
    <message>
        <source>Side by side</source>
        <translation>Nebeneinander</translation>
    </message>
    <message>
        <source>{w}, {w}; click assigns, drag paints, right click locks</source>
        <translation>{w}, {w}; Klick weist zu, Ziehen malt, Rechtsklick sperrt</translation>
    </message>
    <message>
        <source>{w}; {w}, drag paints, right click locks</source>
        <translation>{w}; {w}, Ziehen malt, Rechtsklick sperrt</translation>
    </message>
    <message>
        <source>click assigns</source>
        <translation>Klick weist zu</translation>
    </message>
    <message>
        <source>Sum of the losses of all layers; lower is better. It includes {w}.</source>
        <translation>Summe der Verluste aller Schichten; kleiner ist besser. Enthalten: {w}.</translation>
    </message>
    <message>
        <source>Sum of the losses of all layers; lower is better. It includes {w}. The losses of single layers add up to {}; together it is {w}, because errors interact.</source>
        <translation>Summe der Verluste aller Schichten; kleiner ist besser. Enthalten: {w}. Die Verluste der einzelnen Schichten ergeben {}; zusammen ist es {w}, weil Fehler zusammenwirken.</translation>
    </message>
    <message>
        <source>{n} less</source>
        <translation>{n} weniger</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>weights and {w}</source>
        <translation>Gewichte und {w}</translation>
    </message>
    <message>
        <source>the rounded inputs of {w}</source>
        <translation>die gerundeten Eingaben von {w}</translation>
    </message>
    <message>
        <source>the rounded keys and values of {w}</source>
        <translation>die gerundeten Keys und Values von {w}</translation>
    </message>
    <message>
        <source>{w} (and {n} more)</source>
        <translation>{w} (und {n} weitere)</translation>
    </message>
    <message>
        <source>{n} layers under {w}</source>
        <translation>{n} Schichten mit {w}</translation>
    </message>
    <message>
        <source>{w} quantized</source>
        <translation>{w} quantisiert</translation>
    </message>
    <message>
        <source>this plan, on {}</source>
        <translation>dieser Plan, auf {}</translation>
    </message>
    <message>
        <source>this plan was exported</source>
        <translation>dieser Plan wurde exportiert</translation>
    </message>
    <message>
        <source>this plan ran in its runtime</source>
        <translation>dieser Plan lief in seiner Laufzeit</translation>
    </message>
    <message>
        <source>Click to see it</source>
        <translation>Ein Klick zeigt es</translation>
    </message>
    <message>
        <source>{} does it again</source>
        <translation>{} macht es noch einmal</translation>
    </message>
    <message>
        <source>done</source>
        <translation>erledigt</translation>
    </message>
    <message>
        <source>running</source>
        <translation>läuft</translation>
    </message>
    <message>
        <source>next</source>
        <translation>als Nächstes</translation>
    </message>
    <message>
        <source>not yet</source>
        <translation>noch nicht</translation>
    </message>
    <message>
        <source>What was timed of this plan at batch {n}: {} against {} in floating point, {}× ({w}).</source>
        <translation>Was von diesem Plan bei Batch {n} gemessen wurde: {} gegen {} in Gleitkomma, {}× ({w}).</translation>
    </message>
    <message>
        <source>This plan at batch {n}: {} against {} in floating point, {}× ({w}).</source>
        <translation>Dieser Plan bei Batch {n}: {} gegen {} in Gleitkomma, {}× ({w}).</translation>
    </message>
    <message>
        <source>{w} one after another</source>
        <translation>{w} nacheinander</translation>
    </message>
    <message>
        <source>Estimate for {} at batch {}, by its data sheet and not measured: {} against {} as stored, {}×{}.</source>
        <translation>Schätzung für {} bei Batch {}, nach Datenblatt und nicht gemessen: {} gegen {} wie gespeichert, {}×{}.</translation>
    </message>
    <message>
        <source>Measured on {w}.</source>
        <translation>Gemessen auf {w}.</translation>
    </message>
    <message>
        <source>{w} (estimate)</source>
        <translation>{w} (Schätzung)</translation>
    </message>
    <message>
        <source>this machine, not measured yet</source>
        <translation>dieser Rechner, noch nicht gemessen</translation>
    </message>
    <message>
        <source>Time the plan's kernels at several batch sizes, and the machine's own ceilings</source>
        <translation>Die Kernel des Plans bei mehreren Batchgrößen messen, und die Grenzen des Rechners</translation>
    </message>
    <message>
        <source>Measure Ceilings draws how fast this machine's memory and arithmetic let a kernel be</source>
        <translation>Grenzen messen zeigt, wie schnell Speicher und Rechenwerk dieses Rechners einen Kernel sein lassen</translation>
    </message>
    <message>
        <source>From {} to {}: {}</source>
        <translation>Von {} zu {}: {}</translation>
    </message>
    <message>
        <source>kept</source>
        <translation>behalten</translation>
    </message>
    <message>
        <source>– (a CPU kernel has none)</source>
        <translation>– (ein CPU-Kernel hat keine)</translation>
    </message>
    <message>
        <source>No CUDA device is present: every time here is from the CPU, and says nothing about a GPU</source>
        <translation>Kein CUDA-Gerät ist da: Jede Zeit hier ist von der CPU und sagt nichts über eine GPU</translation>
    </message>
    <message>
        <source>No CUDA device is present: every time here is from the CPU, and says nothing about a GPU.</source>
        <translation>Kein CUDA-Gerät ist da: Jede Zeit hier ist von der CPU und sagt nichts über eine GPU.</translation>
    </message>
    <message>
        <source>measured here with {w}: a copy of {}, an FP32 product of {}. Kernels whose weights stay in a cache may lie above the memory's line</source>
        <translation>hier gemessen mit {w}: eine Kopie von {}, ein FP32-Produkt von {}. Kernel, deren Gewichte in einem Cache bleiben, können über der Linie des Speichers liegen</translation>
    </message>
    <message>
        <source>no kernel of this machine serves {}: timed as {}</source>
        <translation>kein Kernel dieses Rechners bedient {}: gemessen als {}</translation>
    </message>
    <message>
        <source>{} (median; line: 10 % to 90 %). {w}</source>
        <translation>{} (Median; Linie: 10 % bis 90 %). {w}</translation>
    </message>
    <message>
        <source>{}{} {} (median; line: 10 % to 90 %). {w}</source>
        <translation>{}{} {} (Median; Linie: 10 % bis 90 %). {w}</translation>
    </message>
    <message>
        <source>Quantizes the model by the plan and compares each weight with the original: SQNR, largest error, zeros.</source>
        <translation>Quantisiert das Modell nach dem Plan und vergleicht jedes Gewicht mit dem ursprünglichen: SQNR, größter Fehler, Nullen.</translation>
    </message>
    <message>
        <source>Lowest SQNR: {} dB in {}</source>
        <translation>Kleinstes SQNR: {} dB in {}</translation>
    </message>
    <message>
        <source>Export: not now</source>
        <translation>Exportieren: nicht jetzt</translation>
    </message>
    <message>
        <source>name the file or folder to write first; the usual one stands there now</source>
        <translation>zuerst die Datei oder den Ordner nennen; der übliche Name steht jetzt da</translation>
    </message>
    <message>
        <source>save the session before it runs: the script reads its file</source>
        <translation>die Sitzung vorher speichern: das Skript liest ihre Datei</translation>
    </message>
    <message>
        <source>Copied {w} as Python</source>
        <translation>{w} als Python kopiert</translation>
    </message>
    <message>
        <source>it took {}</source>
        <translation>es dauerte {}</translation>
    </message>
    <message>
        <source>Before and after of {}</source>
        <translation>Vorher und nachher von {}</translation>
    </message>
    <message>
        <source>Models run on {} from the next job on</source>
        <translation>Modelle laufen ab dem nächsten Auftrag auf {}</translation>
    </message>
    <message>
        <source>Recover unsaved work on {}?</source>
        <translation>Nicht gespeicherte Arbeit an {} wiederherstellen?</translation>
    </message>
    <message>
        <source>Recovered {}</source>
        <translation>{} wiederhergestellt</translation>
    </message>
    <message>
        <source>{}; it is being restarted, and nothing is lost</source>
        <translation>{}; sie wird neu gestartet, nichts ist verloren</translation>
    </message>
    <message>
        <source>{}; send it to whoever can help</source>
        <translation>{}; an jemanden schicken, der helfen kann</translation>
    </message>
    <message>
        <source>“{}” can be read in two ways: use a decimal comma and no separator of thousands, for example 4,5</source>
        <translation>„{}“ lässt sich auf zwei Arten lesen: ein Dezimalkomma und keine Tausendertrennung verwenden, zum Beispiel 4,5</translation>
    </message>
    <message>
        <source>“{}” has a comma: use a decimal point and no separator of thousands, for example 4.5</source>
        <translation>„{}“ hat ein Komma: einen Dezimalpunkt und keine Tausendertrennung verwenden, zum Beispiel 4.5</translation>
    </message>
    <message>
        <source>“{}” is not a number: expected digits and a decimal point, for example 4.5</source>
        <translation>„{}“ ist keine Zahl: erwartet sind Ziffern und ein Dezimalpunkt, zum Beispiel 4.5</translation>
    </message>
    <message>
        <source>“{}” is out of range: expected a number from {} to {}</source>
        <translation>„{}“ liegt außerhalb: erwartet ist eine Zahl von {} bis {}</translation>
    </message>
    <message>
        <source>“{}” is not a whole number: expected a number from {} to {}</source>
        <translation>„{}“ ist keine ganze Zahl: erwartet ist eine Zahl von {} bis {}</translation>
    </message>
    <message>
        <source>Enter a number</source>
        <translation>Eine Zahl eingeben</translation>
    </message>
    <message>
        <source>Integers</source>
        <translation>Ganzzahlen</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>16/32 bit</source>
        <translation>16/32 Bit</translation>
    </message>
    <message>
        <source>median; line: 10 % to 90 %</source>
        <translation>Median; Linie: 10 % bis 90 %</translation>
    </message>
    <message>
        <source>estimate</source>
        <translation>Schätzung</translation>
    </message>
    <message>
        <source>{n} timing of schemes that the plan does not have left out.</source>
        <translation>{n} Messung von Schemata, die der Plan nicht hat, ist weggelassen.</translation>
    </message>
    <message>
        <source>{n} timings of schemes that the plan does not have left out.</source>
        <translation>{n} Messungen von Schemata, die der Plan nicht hat, sind weggelassen.</translation>
    </message>
    <message>
        <source>queued</source>
        <translation>wartet</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>gescheitert</translation>
    </message>
    <message>
        <source>cancelled</source>
        <translation>abgebrochen</translation>
    </message>
    <message>
        <source>one after another</source>
        <translation>nacheinander</translation>
    </message>
    <message>
        <source>&amp;Decimal Mark…</source>
        <translation>De&amp;zimalzeichen…</translation>
    </message>
    <message>
        <source>Choose whether the window shows numbers with a decimal point or comma</source>
        <translation>Wählen, ob das Fenster Zahlen mit Dezimalpunkt oder Komma zeigt</translation>
    </message>
    <message>
        <source>The choice takes effect at the next start.</source>
        <translation>Die Wahl gilt ab dem nächsten Start.</translation>
    </message>
    <message>
        <source>How the window shows numbers, from the next start on. Fields take both marks then; files have a point.</source>
        <translation>Wie das Fenster Zahlen zeigt, vom nächsten Start an. Felder nehmen dann beide Zeichen an; Dateien haben einen Punkt.</translation>
    </message>
    <message>
        <source>Decimal mark</source>
        <translation>Dezimalzeichen</translation>
    </message>
    <message>
        <source>{n} bits/weight ({n} in all)</source>
        <translation>{n} Bits/Gewicht ({n} insgesamt)</translation>
    </message>
    <message>
        <source>{n} {w} layers</source>
        <translation>{n} {w} Schichten</translation>
    </message>
    <message>
        <source>predicted {n}</source>
        <translation>vorhergesagt {n}</translation>
    </message>
    <message>
        <source>{n} bits</source>
        <translation>{n} Bits</translation>
    </message>
    <message>
        <source>&amp;Point: 1,234.5</source>
        <translation>&amp;Punkt: 1,234.5</translation>
    </message>
    <message>
        <source>C&amp;omma: 1.234,5</source>
        <translation>K&amp;omma: 1.234,5</translation>
    </message>
    <message>
        <source>{n} of {w}</source>
        <translation>{n} von {w}</translation>
    </message>
    <message>
        <source>{w} measured</source>
        <translation>{w} gemessen</translation>
    </message>
    <message>
        <source>{n} of them measured</source>
        <translation>{n} davon gemessen</translation>
    </message>
    <message>
        <source>since no gradient tells what they decide</source>
        <translation>da kein Gradient zeigt, was sie entscheiden</translation>
    </message>
    <message>
        <source>the others predicted and corrected</source>
        <translation>die anderen vorhergesagt und korrigiert</translation>
    </message>
    <message>
        <source>{} to {}</source>
        <translation>{} bis {}</translation>
    </message>
    <message>
        <source>Coarse plan: a loss of {n} nats is beyond what the second order predicts well: evaluate or audit the plan (range widened to {n} %, {n} %).</source>
        <translation>Grober Plan: einen Verlust von {n} nats sagt die zweite Ordnung nicht gut voraus: den Plan auswerten oder prüfen (Bereich erweitert auf {n} %, {n} %).</translation>
    </message>
    <message>
        <source>Coarse plan: the second order says {n}; plans of {n} to {n} bits, measured on {n} samples of the calibration, cost {n} times as much at this size, and the prediction counts that.</source>
        <translation>Grober Plan: die zweite Ordnung sagt {n}; Pläne von {n} bis {n} Bit, gemessen auf {n} Beispielen der Kalibrierung, kosten bei dieser Größe das {n}-fache, und die Vorhersage rechnet damit.</translation>
    </message>
    <message>
        <source>Outputs of {w}</source>
        <translation>Ausgaben von {w}</translation>
    </message>
    <message>
        <source>&amp;Bundled Text: {}</source>
        <translation>&amp;Mitgelieferter Text: {}</translation>
    </message>
    <message>
        <source>Share of the model that is open</source>
        <translation>Anteil des Modells, der geöffnet ist</translation>
    </message>
    <message>
        <source>What is being opened</source>
        <translation>Was geöffnet wird</translation>
    </message>
    <message>
        <source>An embedding takes token ids, which are never rounded. Its rows are under Weights.</source>
        <translation>Eine Einbettung bekommt Nummern von Token, die nie gerundet werden. Ihre Zeilen stehen unter Gewichte.</translation>
    </message>
    <message>
        <source>The weights are still being read.</source>
        <translation>Die Gewichte werden noch gelesen.</translation>
    </message>
    <message>
        <source>No statistics of this weight were kept.</source>
        <translation>Von diesem Gewicht wurde keine Statistik behalten.</translation>
    </message>
    <message>
        <source>The calibration data never reached this layer.</source>
        <translation>Die Kalibrierungsdaten haben diese Schicht nie erreicht.</translation>
    </message>
    <message>
        <source>No scores yet.

Compute the sensitivity (F6) to see what every scheme would cost every layer.</source>
        <translation>Noch keine Bewertung.

Empfindlichkeit berechnen (F6), um zu sehen, was jedes Schema jede Schicht kosten würde.</translation>
    </message>
    <message>
        <source>A Hugging Face folder, .safetensors, .gguf, .onnx, .pt2 or Python file</source>
        <translation>Hugging-Face-Ordner, .safetensors, .gguf, .onnx, .pt2 oder Python</translation>
    </message>
    <message>
        <source>Audit {}</source>
        <translation>{} prüfen</translation>
    </message>
    <message>
        <source>Calibrate on {w}</source>
        <translation>Kalibrieren mit {w}</translation>
    </message>
    <message>
        <source>the bundled data</source>
        <translation>den mitgelieferten Daten</translation>
    </message>
    <message>
        <source>Compare with {}</source>
        <translation>Vergleichen mit {}</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>Drawing the window</source>
        <translation>Das Fenster wird gezeichnet</translation>
    </message>
    <message>
        <source>Error budget of {}</source>
        <translation>Fehlerbudget von {}</translation>
    </message>
    <message>
        <source>Errors by channel of {}</source>
        <translation>Fehler nach Kanal von {}</translation>
    </message>
    <message>
        <source>Explain {}</source>
        <translation>{} erklären</translation>
    </message>
    <message>
        <source>Export {} to {}</source>
        <translation>{} nach {} exportieren</translation>
    </message>
    <message>
        <source>List the best plan of every size</source>
        <translation>Den besten Plan jeder Größe auflisten</translation>
    </message>
    <message>
        <source>Loading the network</source>
        <translation>Das Netz wird geladen</translation>
    </message>
    <message>
        <source>Measure close decisions at {n} bits per weight</source>
        <translation>Knappe Entscheidungen bei {n} Bits je Gewicht messen</translation>
    </message>
    <message>
        <source>Open {}</source>
        <translation>{} öffnen</translation>
    </message>
    <message>
        <source>Read {} samples from {n}</source>
        <translation>Beispiele ab {n} lesen ({})</translation>
    </message>
    <message>
        <source>Reading the model</source>
        <translation>Das Modell wird gelesen</translation>
    </message>
    <message>
        <source>Reconstruction by {}</source>
        <translation>Rekonstruktion nach {}</translation>
    </message>
    <message>
        <source>Run {} in {}</source>
        <translation>{} in {} ausführen</translation>
    </message>
    <message>
        <source>Save {}</source>
        <translation>{} speichern</translation>
    </message>
    <message>
        <source>Search a plan of {w}</source>
        <translation>Einen Plan mit {w} suchen</translation>
    </message>
    <message>
        <source>{n} bits per weight</source>
        <translation>{n} Bits je Gewicht</translation>
    </message>
    <message>
        <source>Sensitivity by {w}</source>
        <translation>Empfindlichkeit nach {w}</translation>
    </message>
    <message>
        <source>predicted KL</source>
        <translation>vorhergesagter KL</translation>
    </message>
    <message>
        <source>measured KL</source>
        <translation>gemessener KL</translation>
    </message>
    <message>
        <source>weight error</source>
        <translation>Gewichtsfehler</translation>
    </message>
    <message>
        <source>output error</source>
        <translation>Ausgabefehler</translation>
    </message>
    <message>
        <source>The memory ran out; again with {}</source>
        <translation>Der Speicher reichte nicht; noch einmal mit {}</translation>
    </message>
    <message>
        <source>Time the kernels of {}</source>
        <translation>Kernel von {} messen</translation>
    </message>
    <message>
        <source>Time {n} candidates at batch {n}</source>
        <translation>{n} Kandidaten bei Batch {n} messen</translation>
    </message>
    <message>
        <source>Train {} to {}</source>
        <translation>{} nach {} trainieren</translation>
    </message>
    <message>
        <source>biases corrected</source>
        <translation>Bias-Werte korrigiert</translation>
    </message>
    <message>
        <source>calibrated</source>
        <translation>kalibriert</translation>
    </message>
    <message>
        <source>calibrating</source>
        <translation>Kalibrierung</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>Gradienten</translation>
    </message>
    <message>
        <source>mean inputs</source>
        <translation>mittlere Eingaben</translation>
    </message>
    <message>
        <source>capturing the network</source>
        <translation>Das Netz wird aufgezeichnet</translation>
    </message>
    <message>
        <source>checking {}</source>
        <translation>{} wird geprüft</translation>
    </message>
    <message>
        <source>comparing block outputs</source>
        <translation>Ausgaben der Blöcke werden verglichen</translation>
    </message>
    <message>
        <source>comparing the rewritten model with the original</source>
        <translation>Das umgeschriebene Modell wird mit dem Original verglichen</translation>
    </message>
    <message>
        <source>comparing {}</source>
        <translation>{} wird verglichen</translation>
    </message>
    <message>
        <source>correcting the rounded model: {}</source>
        <translation>Das gerundete Modell wird korrigiert: {}</translation>
    </message>
    <message>
        <source>evaluated</source>
        <translation>ausgewertet</translation>
    </message>
    <message>
        <source>evaluating the same samples</source>
        <translation>Dieselben Beispiele werden ausgewertet</translation>
    </message>
    <message>
        <source>evaluating the same tokens</source>
        <translation>Dieselben Token werden ausgewertet</translation>
    </message>
    <message>
        <source>gains measured</source>
        <translation>Verstärkungen gemessen</translation>
    </message>
    <message>
        <source>loading it with transformers</source>
        <translation>Wird mit transformers geladen</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>gemessen</translation>
    </message>
    <message>
        <source>measured {}</source>
        <translation>{} gemessen</translation>
    </message>
    <message>
        <source>measuring memory and products</source>
        <translation>Speicher und Produkte werden gemessen</translation>
    </message>
    <message>
        <source>noise from {}</source>
        <translation>Rauschen von {}</translation>
    </message>
    <message>
        <source>quantized</source>
        <translation>quantisiert</translation>
    </message>
    <message>
        <source>quantizing {} to {}</source>
        <translation>{} wird zu {} quantisiert</translation>
    </message>
    <message>
        <source>quantizing {} with the inputs that it gets</source>
        <translation>{} wird mit den Eingaben quantisiert, die es bekommt</translation>
    </message>
    <message>
        <source>ranges computed</source>
        <translation>Bereiche berechnet</translation>
    </message>
    <message>
        <source>ranges of {}</source>
        <translation>Bereiche von {}</translation>
    </message>
    <message>
        <source>reading the weights of {}</source>
        <translation>Die Gewichte von {} werden gelesen</translation>
    </message>
    <message>
        <source>refined</source>
        <translation>verfeinert</translation>
    </message>
    <message>
        <source>rewriting the model: {}</source>
        <translation>Das Modell wird umgeschrieben: {}</translation>
    </message>
    <message>
        <source>running it in {}</source>
        <translation>Läuft in {}</translation>
    </message>
    <message>
        <source>scored</source>
        <translation>bewertet</translation>
    </message>
    <message>
        <source>scored {}</source>
        <translation>{} bewertet</translation>
    </message>
    <message>
        <source>scored {n} of {n} layers</source>
        <translation>{n} von {n} Schichten bewertet</translation>
    </message>
    <message>
        <source>scoring {} as {}</source>
        <translation>{} wird als {} bewertet</translation>
    </message>
    <message>
        <source>checking that {name} holds the plan</source>
        <translation>Prüfen, ob {name} den Plan fasst</translation>
    </message>
    <message>
        <source>checking the prediction, plan {n} of {n}</source>
        <translation>Prüfen der Vorhersage, Plan {n} von {n}</translation>
    </message>
    <message>
        <source>the plan as a whole, batch {n}</source>
        <translation>Der Plan als Ganzes, Batch {n}</translation>
    </message>
    <message>
        <source>the {w} of {}, batch {n}</source>
        <translation>{w} von {}, Batch {n}</translation>
    </message>
    <message>
        <source>timed</source>
        <translation>gemessen</translation>
    </message>
    <message>
        <source>timing {} at {n} x {n}</source>
        <translation>{} wird bei {n} × {n} gemessen</translation>
    </message>
    <message>
        <source>weights read</source>
        <translation>Gewichte gelesen</translation>
    </message>
    <message>
        <source>writing {}</source>
        <translation>{} wird geschrieben</translation>
    </message>
    <message>
        <source>wrote {}</source>
        <translation>{} geschrieben</translation>
    </message>
    <message>
        <source>{} as {}, batch {n}</source>
        <translation>{} als {}, Batch {n}</translation>
    </message>
    <message>
        <source>{w}, batch {n} of {n}</source>
        <translation>{w}, Batch {n} von {n}</translation>
    </message>
    <message>
        <source>{w}: done</source>
        <translation>{w}: fertig</translation>
    </message>
    <message>
        <source>{w}: step {n} of {n}{}</source>
        <translation>{w}: Schritt {n} von {n}{}</translation>
    </message>
    <message>
        <source>the plan</source>
        <translation>der Plan</translation>
    </message>
    <message>
        <source>{w}: about {}, {} of memory</source>
        <translation>{w}: etwa {}, {} Speicher</translation>
    </message>
    <message>
        <source>{w}: about {}, {} of memory, {} on the disk</source>
        <translation>{w}: etwa {}, {} Speicher, {} auf der Platte</translation>
    </message>
    <message>
        <source>1 tied</source>
        <translation>1 gekoppelt</translation>
    </message>
    <message>
        <source>{n} tied</source>
        <translation>{n} gekoppelt</translation>
    </message>
    <message>
        <source>{} parameters</source>
        <translation>{} Parameter</translation>
    </message>
    <message>
        <source>Done: {w}</source>
        <translation>Fertig: {w}</translation>
    </message>
    <message>
        <source>Evaluate {}</source>
        <translation>{} auswerten</translation>
    </message>
    <message>
        <source>Evaluate {} on {}</source>
        <translation>{} mit {} auswerten</translation>
    </message>
    <message>
        <source>{} (and {} more)</source>
        <translation>{} (und {} weitere)</translation>
    </message>
    <message>
        <source>Open a .safetensors, .gguf, .onnx, .pt2 or Python file</source>
        <translation>Eine .safetensors-, .gguf-, .onnx-, .pt2- oder Python-Datei öffnen</translation>
    </message>
    <message>
        <source>Open a model file</source>
        <translation>Eine Modelldatei öffnen</translation>
    </message>
    <message>
        <source>Open a model folder</source>
        <translation>Einen Modellordner öffnen</translation>
    </message>
    <message>
        <source>system</source>
        <translation>System</translation>
    </message>
    <message>
        <source>The network is still being loaded; its layers are shown already.</source>
        <translation>Das Netz wird noch geladen; seine Schichten sind schon zu sehen.</translation>
    </message>
    <message>
        <source>the file holds weights only, not the network; open its Hugging Face folder, or a Python file with a factory function together with these weights</source>
        <translation>die Datei enthält nur Gewichte, nicht das Netz; ihren Hugging-Face-Ordner öffnen, oder eine Python-Datei mit einer Funktion, die das Netz baut, zusammen mit diesen Gewichten</translation>
    </message>
    <message>
        <source>The file holds weights only, not the network; open its Hugging Face folder, or a Python file with a factory function together with these weights.</source>
        <translation>Die Datei enthält nur Gewichte, nicht das Netz; ihren Hugging-Face-Ordner öffnen, oder eine Python-Datei mit einer Funktion, die das Netz baut, zusammen mit diesen Gewichten.</translation>
    </message>
    <message>
        <source>Models, sessions and plans (*.safetensors *.pt2 *.py *.json *.gguf *.onnx *.pt *.pth *.qwb)</source>
        <translation>Modelle, Sitzungen und Pläne (*.safetensors *.pt2 *.py *.json *.gguf *.onnx *.pt *.pth *.qwb)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Sessions (*.qwb)</source>
        <translation>Sitzungen (*.qwb)</translation>
    </message>
    <message>
        <source>Possible now, though an earlier stage usually comes first</source>
        <translation>Schon möglich, auch wenn sonst ein früherer Schritt zuerst kommt</translation>
    </message>
    <message>
        <source>Microscaling</source>
        <translation>Microscaling</translation>
    </message>
    <message>
        <source>Small floats</source>
        <translation>Kleine Gleitkommazahlen</translation>
    </message>
    <message>
        <source>16- and 32-bit floats</source>
        <translation>Gleitkomma mit 16 und 32 Bit</translation>
    </message>
    <message>
        <source>Codebooks</source>
        <translation>Codebücher</translation>
    </message>
    <message>
        <source>GGUF, read only</source>
        <translation>GGUF, nur zum Lesen</translation>
    </message>
    <message>
        <source>GGUF vectors</source>
        <translation>GGUF-Vektoren</translation>
    </message>
    <message>
        <source>GGUF blocks</source>
        <translation>GGUF-Blöcke</translation>
    </message>
    <message>
        <source>share</source>
        <translation>Anteil</translation>
    </message>
    <message>
        <source>per token</source>
        <translation>je Token</translation>
    </message>
    <message>
        <source>{} schemes</source>
        <translation>{} Schemata</translation>
    </message>
    <message>
        <source> (tied)</source>
        <translation> (gekoppelt)</translation>
    </message>
    <message>
        <source> (must share)</source>
        <translation> (gemeinsam)</translation>
    </message>
    <message>
        <source> (locked)</source>
        <translation> (gesperrt)</translation>
    </message>
    <message>
        <source>Outliers</source>
        <translation>Ausreißer</translation>
    </message>
    <message>
        <source>percentile</source>
        <translation>Perzentil</translation>
    </message>
    <message>
        <source>entropy</source>
        <translation>Entropie</translation>
    </message>
    <message>
        <source>bits (◆ predicted)</source>
        <translation>Bits (◆ vorhergesagt)</translation>
    </message>
    <message>
        <source>Measured on {}.</source>
        <translation>Gemessen auf {}.</translation>
    </message>
    <message>
        <source>layers</source>
        <translation>Schichten</translation>
    </message>
    <message>
        <source>These layers have no statistics; calibrate (F5), or select others</source>
        <translation>Diese Schichten haben keine Statistik; kalibrieren (F5) oder andere wählen</translation>
    </message>
    <message>
        <source>moving average</source>
        <translation>gleitender Mittelwert</translation>
    </message>
    <message>
        <source>Engine {}</source>
        <translation>Rechenprozess {}</translation>
    </message>
    <message>
        <source>Window {}</source>
        <translation>Fenster {}</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>Fenster</translation>
    </message>
    <message>
        <source>{n} layer left out</source>
        <translation>{n} Schicht ausgelassen</translation>
    </message>
    <message>
        <source>{n} layers left out</source>
        <translation>{n} Schichten ausgelassen</translation>
    </message>
    <message>
        <source>of weights alone</source>
        <translation>nur der Gewichte</translation>
    </message>
    <message>
        <source>weights alone</source>
        <translation>nur Gewichte</translation>
    </message>
    <message>
        <source>256 tokens, or as many as the model takes</source>
        <translation>256 Token, oder so viele wie das Modell nimmt</translation>
    </message>
    <message>
        <source>Repeatability</source>
        <translation>Wiederholbarkeit</translation>
    </message>
    <message>
        <source>Largest layer error</source>
        <translation>Größter Schichtfehler</translation>
    </message>
    <message>
        <source>Where codes differ</source>
        <translation>Wo Codes abweichen</translation>
    </message>
    <message>
        <source>The layer from which on rounded inputs differ</source>
        <translation>Die Schicht, ab der gerundete Eingaben abweichen</translation>
    </message>
    <message>
        <source>The most by which a layer differs that is fed the evaluation's inputs, relative to its largest number: the rounding of sums, where the file computes what was evaluated</source>
        <translation>Das Meiste, um das eine Schicht abweicht, die die Eingaben der Auswertung bekommt, bezogen auf ihre größte Zahl: die Rundung der Summen, wo die Datei rechnet, was ausgewertet wurde</translation>
    </message>
    <message>
        <source>The same of our own evaluation after a change of 1e-7 in what layers round, as another order of sums makes it: where inputs are rounded, no two programs agree better</source>
        <translation>Dasselbe bei unserer eigenen Auswertung nach einer Änderung um 1e-7 in dem, was Schichten runden, wie sie eine andere Reihenfolge der Summen bewirkt: wo Eingaben gerundet werden, stimmen zwei Programme nie besser überein</translation>
    </message>
    <message>
        <source>{} belongs to the model in {}. Its weights alone can be planned, but not run.</source>
        <translation>{} gehört zum Modell in {}. Allein lassen sich die Gewichte planen, aber nicht ausführen.</translation>
    </message>
    <message>
        <source>Open the &amp;Model</source>
        <translation>Das &amp;Modell öffnen</translation>
    </message>
    <message>
        <source>Only the &amp;Weights</source>
        <translation>Nur die &amp;Gewichte</translation>
    </message>
    <message>
        <source>Open the whole model?</source>
        <translation>Das ganze Modell öffnen?</translation>
    </message>
    <message>
        <source>margins of router {n} of {n}, batch {n}</source>
        <translation>Abstände von Router {n} von {n}, Batch {n}</translation>
    </message>
    <message>
        <source>tokens of router {n} of {n} sent elsewhere, batch {n}</source>
        <translation>Token von Router {n} von {n} anderswohin geschickt, Batch {n}</translation>
    </message>
    <message>
        <source>best plans</source>
        <translation>beste Pläne</translation>
    </message>
    <message>
        <source>one scheme everywhere</source>
        <translation>überall ein Schema</translation>
    </message>
    <message>
        <source>measured, 95 % interval</source>
        <translation>gemessen, 95-%-Intervall</translation>
    </message>
    <message>
        <source>Facts</source>
        <translation>Angaben</translation>
    </message>
    <message>
        <source>GGUF file</source>
        <translation>GGUF-Datei</translation>
    </message>
    <message>
        <source>compressed-tensors folder</source>
        <translation>compressed-tensors-Ordner</translation>
    </message>
    <message>
        <source>ONNX file</source>
        <translation>ONNX-Datei</translation>
    </message>
    <message>
        <source>ONNX folder</source>
        <translation>ONNX-Ordner</translation>
    </message>
    <message>
        <source>torchao folder</source>
        <translation>torchao-Ordner</translation>
    </message>
    <message>
        <source>MLX folder</source>
        <translation>MLX-Ordner</translation>
    </message>
    <message>
        <source>Packed safetensors</source>
        <translation>Gepackte safetensors</translation>
    </message>
    <message>
        <source>{}: {}, shared by {n} layers, saves {} and adds a loss of {}</source>
        <translation>{}: {}, geteilt von {n} Schichten, spart {} und kostet einen Verlust von {}</translation>
    </message>
    <message>
        <source>{}: {}, shared by {n} layers, saves {} and adds a loss that was not scored</source>
        <translation>{}: {}, geteilt von {n} Schichten, spart {} und kostet einen Verlust, der nicht bewertet wurde</translation>
    </message>
    <message>
        <source>{}: {} saves {} and adds a loss that was not scored</source>
        <translation>{}: {} spart {} und kostet einen Verlust, der nicht bewertet wurde</translation>
    </message>
    <message>
        <source>Bytes of every tensor of the model under the plan: quantized weights with their scales and zero points, and what stays as it is; smaller than all of them unquantized.</source>
        <translation>Bytes aller Tensoren des Modells nach dem Plan: quantisierte Gewichte mit ihren Skalen und Nullpunkten, und was bleibt, wie es ist; kleiner als alle unquantisiert.</translation>
    </message>
    <message>
        <source>{n} B unquantized</source>
        <translation>{n} B unquantisiert</translation>
    </message>
    <message>
        <source>{n} kB unquantized</source>
        <translation>{n} kB unquantisiert</translation>
    </message>
    <message>
        <source>{n} MB unquantized</source>
        <translation>{n} MB unquantisiert</translation>
    </message>
    <message>
        <source>{n} GB unquantized</source>
        <translation>{n} GB unquantisiert</translation>
    </message>
    <message>
        <source>{n} TB unquantized</source>
        <translation>{n} TB unquantisiert</translation>
    </message>
    <message>
        <source>All blocks and layers with their scheme, weight histogram, size and loss. To change the number format, select layers, then press F2 or use the Plan panel.</source>
        <translation>Alle Blöcke und Schichten mit Schema, Histogramm der Gewichte, Größe und Verlust. Um das Zahlenformat zu ändern, Schichten auswählen und F2 drücken oder die Ansicht Plan benutzen.</translation>
    </message>
    <message>
        <source>Automatic: float32 on the CPU, the model's own elsewhere</source>
        <translation>Automatisch: float32 auf der CPU, sonst das des Modells</translation>
    </message>
    <message>
        <source>Evaluate (F8) compares the plan with the floating-point model and shows confidence intervals. Save with Ctrl+S and export with Ctrl+Shift+E. Ctrl+K lists all commands; F1 opens the guide.</source>
        <translation>Auswerten (F8) vergleicht den Plan mit dem Gleitkommamodell und zeigt Konfidenzintervalle. Strg+S speichert, Strg+Umschalt+E exportiert. Strg+K zeigt alle Befehle, F1 das Handbuch.</translation>
    </message>
    <message>
        <source>Float state dict</source>
        <translation>State-Dict in Gleitkomma</translation>
    </message>
    <message>
        <source>GGUF</source>
        <translation>GGUF</translation>
    </message>
    <message>
        <source>GPTQ folder</source>
        <translation>GPTQ-Ordner</translation>
    </message>
    <message>
        <source>Histograms of the selected layer's weights, inputs and outputs. Calibrate (F5) to see inputs and outputs, then drag the shaded range to see how much it clips.</source>
        <translation>Histogramme der Gewichte, Eingaben und Ausgaben der ausgewählten Schicht. Kalibrieren (F5) zeigt Eingaben und Ausgaben; den getönten Bereich ziehen zeigt, wie viel er abschneidet.</translation>
    </message>
    <message>
        <source>Hugging Face folder</source>
        <translation>Hugging-Face-Ordner</translation>
    </message>
    <message>
        <source>ONNX</source>
        <translation>ONNX</translation>
    </message>
    <message>
        <source>ONNX Runtime GenAI folder</source>
        <translation>Ordner für ONNX Runtime GenAI</translation>
    </message>
    <message>
        <source>Plan (JSON)</source>
        <translation>Plan (JSON)</translation>
    </message>
    <message>
        <source>Python script</source>
        <translation>Python-Skript</translation>
    </message>
    <message>
        <source>Recipe</source>
        <translation>Rezept</translation>
    </message>
    <message>
        <source>Sensitivity (F6) fills this map: rows are layers, columns are schemes, and the colour is the loss. Click a cell to assign its scheme, drag to assign several, right-click to lock a layer.</source>
        <translation>Empfindlichkeit (F6) füllt diese Karte: Zeilen sind Schichten, Spalten sind Schemata, die Farbe ist der Verlust. Ein Klick auf eine Zelle weist ihr Schema zu, Ziehen mehreren, ein Rechtsklick sperrt eine Schicht.</translation>
    </message>
    <message>
        <source>Size against loss</source>
        <translation>Größe gegen Verlust</translation>
    </message>
    <message>
        <source>Size, bits per weight and predicted loss of the whole model. Search (F7) finds the best plan within a budget; a target limits it to the schemes that your runtime can run. You can undo every edit.</source>
        <translation>Größe, Bits je Gewicht und vorhergesagter Verlust des ganzen Modells. Suchen (F7) findet den besten Plan innerhalb eines Budgets; ein Ziel beschränkt ihn auf Schemata, die die Laufzeit ausführt. Jede Änderung lässt sich rückgängig machen.</translation>
    </message>
    <message>
        <source>The best plans, from the smallest to the most accurate. Move the slider or click a point to use a plan.</source>
        <translation>Die besten Pläne, vom kleinsten bis zum genauesten. Den Regler schieben oder einen Punkt anklicken, um einen Plan zu verwenden.</translation>
    </message>
    <message>
        <source>The model's own, as its file stores it</source>
        <translation>Das des Modells, wie es in der Datei steht</translation>
    </message>
    <message>
        <source>a GPTQ checkpoint: qweight, qzeros, scales, g_idx</source>
        <translation>ein GPTQ-Checkpoint: qweight, qzeros, scales, g_idx</translation>
    </message>
    <message>
        <source>a Python script that replays the plan: quantize, evaluate, write</source>
        <translation>ein Python-Skript, das den Plan wiederholt: quantisieren, auswerten, schreiben</translation>
    </message>
    <message>
        <source>a checkpoint of torchao's tensors that transformers loads</source>
        <translation>ein Checkpoint aus Tensoren von torchao, den transformers lädt</translation>
    </message>
    <message>
        <source>a checkpoint that mlx-lm loads: packed weights, scales, biases</source>
        <translation>ein Checkpoint, den mlx-lm lädt: gepackte Gewichte, Skalen, Nullpunkte</translation>
    </message>
    <message>
        <source>a folder that onnxruntime-genai generates text from, with a cache of keys and values</source>
        <translation>ein Ordner, mit dem onnxruntime-genai Text erzeugt, mit einem Cache von Keys und Values</translation>
    </message>
    <message>
        <source>a folder that transformers loads, with the evaluated values in float32</source>
        <translation>ein Ordner, den transformers lädt, mit den ausgewerteten Werten in float32</translation>
    </message>
    <message>
        <source>a graph for ONNX Runtime, OpenVINO and TensorRT, with the plan's own codes</source>
        <translation>ein Graph für ONNX Runtime, OpenVINO und TensorRT, mit den Codes des Plans</translation>
    </message>
    <message>
        <source>a packed checkpoint that vLLM and transformers load</source>
        <translation>ein gepackter Checkpoint, den vLLM und transformers laden</translation>
    </message>
    <message>
        <source>float32</source>
        <translation>float32</translation>
    </message>
    <message>
        <source>llama.cpp importance matrix</source>
        <translation>Importance-Matrix von llama.cpp</translation>
    </message>
    <message>
        <source>llama.cpp tensor types</source>
        <translation>Tensortypen von llama.cpp</translation>
    </message>
    <message>
        <source>mean squared inputs of the calibration, for llama.cpp's quantizer (--imatrix)</source>
        <translation>mittlere Quadrate der Eingaben aus der Kalibrierung, für den Quantisierer von llama.cpp (--imatrix)</translation>
    </message>
    <message>
        <source>one file for llama.cpp, each tensor in its own type, with the tokenizer</source>
        <translation>eine Datei für llama.cpp, jeder Tensor in seinem Typ, mit dem Tokenizer</translation>
    </message>
    <message>
        <source>packed codes and scales in one safetensors file that says how to decode them</source>
        <translation>gepackte Codes und Skalen in einer safetensors-Datei, die sagt, wie man sie dekodiert</translation>
    </message>
    <message>
        <source>the decoded values as a float state dict (safetensors), for torch's load_state_dict</source>
        <translation>die dekodierten Werte als Gleitkomma-State-Dict (safetensors), für load_state_dict von torch</translation>
    </message>
    <message>
        <source>the plan as JSON, for this workbench and for other programs</source>
        <translation>der Plan als JSON, für diese Workbench und andere Programme</translation>
    </message>
    <message>
        <source>the plan for another quantizer: llm-compressor, modelopt or auto-round (--set tool=NAME)</source>
        <translation>der Plan für einen anderen Quantisierer: llm-compressor, modelopt oder auto-round (--set tool=NAME)</translation>
    </message>
    <message>
        <source>the type of each tensor, for llama.cpp's own quantizer (llama-quantize --tensor-type-file)</source>
        <translation>der Typ jedes Tensors, für den Quantisierer von llama.cpp (llama-quantize --tensor-type-file)</translation>
    </message>
    <message>
        <source>Automatic: the first CUDA device, else the CPU</source>
        <translation>Automatisch: das erste CUDA-Gerät, sonst die CPU</translation>
    </message>
    <message>
        <source>where models are loaded and run</source>
        <translation>wo Modelle geladen und ausgeführt werden</translation>
    </message>
    <message>
        <source>what models compute in; sums, losses and curvature are float32 or wider in any case</source>
        <translation>womit Modelle rechnen; Summen, Verluste und Krümmung sind immer float32 oder breiter</translation>
    </message>
    <message>
        <source>{w} (nats)</source>
        <translation>{w} (nats)</translation>
    </message>
    <message>
        <source>{w} (relative squared error)</source>
        <translation>{w} (relativer quadratischer Fehler)</translation>
    </message>
    <message>
        <source>This session: {}</source>
        <translation>Diese Sitzung: {}</translation>
    </message>
    <message>
        <source>{n} compute thread</source>
        <translation>{n} Rechen-Thread</translation>
    </message>
    <message>
        <source>{n} core</source>
        <translation>{n} Kern</translation>
    </message>
    <message>
        <source>{n} compute threads</source>
        <translation>{n} Rechen-Threads</translation>
    </message>
    <message>
        <source>none that torch can use</source>
        <translation>keine, die torch nutzen kann</translation>
    </message>
    <message>
        <source>{n} cores</source>
        <translation>{n} Kerne</translation>
    </message>
    <message>
        <source>{n} s left</source>
        <translation>noch {n} s</translation>
    </message>
    <message>
        <source>{n} min left</source>
        <translation>noch {n} min</translation>
    </message>
    <message>
        <source>{n} h left</source>
        <translation>noch {n} h</translation>
    </message>
    <message>
        <source>The job is cancelled</source>
        <translation>Der Auftrag ist abgebrochen</translation>
    </message>
    <message>
        <source>the engine starts again for the next one; nothing is lost</source>
        <translation>der Rechenprozess startet für den nächsten neu; nichts geht verloren</translation>
    </message>
    <message>
        <source>lost in part or whole: {}; Jobs lists why</source>
        <translation>ganz oder teilweise verloren: {}; die Gründe stehen unter Aufträge</translation>
    </message>
    <message>
        <source>the engine is running again; nothing is lost</source>
        <translation>der Rechenprozess läuft wieder; nichts ist verloren</translation>
    </message>
    <message>
        <source>checking the prediction by a few measurements</source>
        <translation>die Vorhersage wird mit einigen Messungen geprüft</translation>
    </message>
    <message>
        <source>%</source>
        <translation>%</translation>
    </message>
    <message>
        <source>Cosine of the angle between both models' outputs; 1 is equal, higher is better</source>
        <translation>Kosinus des Winkels zwischen den Ausgaben beider Modelle; 1 ist gleich, größer ist besser</translation>
    </message>
    <message>
        <source>Cosine similarity</source>
        <translation>Kosinusähnlichkeit</translation>
    </message>
    <message>
        <source>Half squared distance</source>
        <translation>Halber quadratischer Abstand</translation>
    </message>
    <message>
        <source>Half the squared distance of both models' outputs, which is what the predicted loss predicts where they are not logits; 0 is equal, lower is better</source>
        <translation>Der halbe quadratische Abstand der Ausgaben beider Modelle, den der vorhergesagte Verlust dort vorhersagt, wo sie keine Logits sind; 0 ist gleich, kleiner ist besser</translation>
    </message>
    <message>
        <source>Intersection over union of the predicted and the labelled pixels of each class, over all images, mean over the classes that occur, in %; higher is better</source>
        <translation>Schnittmenge durch Vereinigung der vorhergesagten und der markierten Pixel jeder Klasse, über alle Bilder, im Mittel der vorkommenden Klassen, in %; größer ist besser</translation>
    </message>
    <message>
        <source>Mean IoU</source>
        <translation>Mittlere IoU</translation>
    </message>
    <message>
        <source>Rank correlation of the cosine between the two texts of a pair (or of a regressor's number) with the score in the data, as STS-B is quoted; 1 is the same order, higher is better</source>
        <translation>Rangkorrelation des Kosinus zwischen den beiden Texten eines Paars (oder der Zahl einer Regression) mit dem Wert in den Daten, wie STS-B angegeben wird; 1 ist dieselbe Reihenfolge, größer ist besser</translation>
    </message>
    <message>
        <source>Share of samples, or of labelled tokens, whose label is the model's most likely answer, in %; higher is better</source>
        <translation>Anteil der Beispiele, deren Label die wahrscheinlichste Antwort des Modells ist, in %; größer ist besser</translation>
    </message>
    <message>
        <source>Share of samples whose label is among the five most likely classes, in %; higher is better</source>
        <translation>Anteil der Beispiele, deren Label unter den fünf wahrscheinlichsten Klassen ist, in %; größer ist besser</translation>
    </message>
    <message>
        <source>Spearman correlation</source>
        <translation>Spearman-Korrelation</translation>
    </message>
    <message>
        <source>Squared distance of both models' outputs over the squared size of the floating-point model's; no unit, lower is better</source>
        <translation>Quadratischer Abstand der Ausgaben beider Modelle durch die quadratische Größe derer des Gleitkommamodells; ohne Einheit, kleiner ist besser</translation>
    </message>
    <message>
        <source>Top-1 accuracy</source>
        <translation>Top-1-Genauigkeit</translation>
    </message>
    <message>
        <source>Top-5 accuracy</source>
        <translation>Top-5-Genauigkeit</translation>
    </message>
    <message>
        <source>Word error rate</source>
        <translation>Wortfehlerrate</translation>
    </message>
    <message>
        <source>Words that are wrong, missing or too many, over the words of the transcripts, in %; lower is better</source>
        <translation>Wörter, die falsch sind, fehlen oder zu viel sind, durch die Wörter der Transkripte, in %; kleiner ist besser</translation>
    </message>
    <message>
        <source>half squared distance</source>
        <translation>halber quadratischer Abstand</translation>
    </message>
    <message>
        <source>hessian trace (HAWQ)</source>
        <translation>Hesse-Spur (HAWQ)</translation>
    </message>
    <message>
        <source>layer-output error</source>
        <translation>Fehler der Schichtausgabe</translation>
    </message>
    <message>
        <source>measured KL of inputs</source>
        <translation>gemessener KL der Eingaben</translation>
    </message>
    <message>
        <source>measured KL of the KV cache</source>
        <translation>gemessener KL des KV-Caches</translation>
    </message>
    <message>
        <source>measured distance</source>
        <translation>gemessenem Abstand</translation>
    </message>
    <message>
        <source>measured distance of inputs</source>
        <translation>gemessenem Abstand der Eingaben</translation>
    </message>
    <message>
        <source>measured distance of the KV cache</source>
        <translation>gemessenem Abstand des KV-Caches</translation>
    </message>
    <message>
        <source>predicted KL of inputs</source>
        <translation>vorhergesagter KL der Eingaben</translation>
    </message>
    <message>
        <source>predicted KL of the KV cache</source>
        <translation>vorhergesagter KL des KV-Caches</translation>
    </message>
    <message>
        <source>predicted distance</source>
        <translation>vorhergesagtem Abstand</translation>
    </message>
    <message>
        <source>predicted distance of inputs</source>
        <translation>vorhergesagtem Abstand der Eingaben</translation>
    </message>
    <message>
        <source>predicted distance of the KV cache</source>
        <translation>vorhergesagtem Abstand des KV-Caches</translation>
    </message>
    <message>
        <source>refined KL</source>
        <translation>verfeinerter KL</translation>
    </message>
    <message>
        <source>refined distance</source>
        <translation>verfeinertem Abstand</translation>
    </message>
    <message>
        <source>relative squared error</source>
        <translation>relativer quadratischer Fehler</translation>
    </message>
    <message>
        <source>Devices: asking the engine…</source>
        <translation>Geräte: der Rechenprozess wird gefragt …</translation>
    </message>
    <message>
        <source>Devices: the engine did not answer</source>
        <translation>Geräte: der Rechenprozess hat nicht geantwortet</translation>
    </message>
    <message>
        <source>Drawing the report</source>
        <translation>Der Bericht wird gezeichnet</translation>
    </message>
    <message>
        <source>Writing the report</source>
        <translation>Der Bericht wird geschrieben</translation>
    </message>
    <message>
        <source>weights only</source>
        <translation>nur Gewichte</translation>
    </message>
    <message>
        <source>current plan, weights only</source>
        <translation>aktueller Plan, nur Gewichte</translation>
    </message>
    <message>
        <source>2,048 tokens, or 256 where the model takes fewer</source>
        <translation>2.048 Token, oder 256, wo das Modell weniger nimmt</translation>
    </message>
    <message>
        <source>How long it takes</source>
        <translation>Wie lange es dauert</translation>
    </message>
    <message>
        <source>Estimating how long it takes…</source>
        <translation>Wie lange es dauert, wird geschätzt …</translation>
    </message>
    <message>
        <source>; all {:,} samples take about {}</source>
        <translation>; alle {:,} Beispiele etwa {}</translation>
    </message>
    <message>
        <source>It takes {}</source>
        <translation>Das dauert {}</translation>
    </message>
    <message>
        <source>about {}, {} of memory</source>
        <translation>etwa {} und braucht {} Speicher</translation>
    </message>
    <message>
        <source>about {}, {} of memory, {} on the disk</source>
        <translation>etwa {} und braucht {} Speicher, {} auf der Platte</translation>
    </message>
    <message>
        <source>It is not known how long it takes: {}</source>
        <translation>Wie lange es dauert, ist nicht bekannt: {}</translation>
    </message>
    <message>
        <source>What must be done first</source>
        <translation>Was zuerst zu tun ist</translation>
    </message>
    <message>
        <source>The plan's {} looks at calibration data; calibrate first, or take it out of the plan (F5)</source>
        <translation>{} im Plan sieht Kalibrierdaten an; zuerst kalibrieren oder es aus dem Plan nehmen (F5)</translation>
    </message>
    <message>
        <source>The layer {} is rounded by {}, which looks at calibration data; calibrate first, or change the plan (F5)</source>
        <translation>Die Schicht {} wird mit {} gerundet, das Kalibrierdaten ansieht; zuerst kalibrieren oder den Plan ändern (F5)</translation>
    </message>
    <message>
        <source>The inputs of {} are rounded within a range that calibration finds; calibrate first, or change the plan (F5)</source>
        <translation>Die Eingaben von {} werden in einem Bereich gerundet, den die Kalibrierung findet; zuerst kalibrieren oder den Plan ändern (F5)</translation>
    </message>
    <message>
        <source>The model has not been calibrated; calibrate first (F5)</source>
        <translation>Das Modell ist nicht kalibriert; zuerst kalibrieren (F5)</translation>
    </message>
    <message>
        <source>No sensitivity has been computed; compute the sensitivity first (F6)</source>
        <translation>Es ist keine Empfindlichkeit berechnet; zuerst die Empfindlichkeit berechnen (F6)</translation>
    </message>
    <message>
        <source>No predicted losses have been computed; compute the sensitivity by predicted KL first (F6)</source>
        <translation>Es sind keine vorhergesagten Verluste berechnet; zuerst die Empfindlichkeit nach vorhergesagter KL berechnen (F6)</translation>
    </message>
    <message>
        <source>The plan quantizes nothing; give layers a scheme first (F7)</source>
        <translation>Der Plan quantisiert nichts; zuerst Schichten ein Schema geben (F7)</translation>
    </message>
    <message>
        <source>{} cannot be run: {}</source>
        <translation>{} lässt sich nicht ausführen: {}</translation>
    </message>
    <message>
        <source>&amp;Zoom to the Range</source>
        <translation>Auf den &amp;Bereich zoomen</translation>
    </message>
    <message>
        <source>Actions</source>
        <translation>Aktionen</translation>
    </message>
    <message>
        <source>Open &amp;Recent</source>
        <translation>&amp;Zuletzt geöffnet</translation>
    </message>
    <message>
        <source>Go to {}</source>
        <translation>Gehe zu {}</translation>
    </message>
    <message>
        <source>{}, seed {}</source>
        <translation>{}, Startwert {}</translation>
    </message>
    <message>
        <source>Save the picture: not now</source>
        <translation>Bild speichern: nicht jetzt</translation>
    </message>
    <message>
        <source>Save the table: not now</source>
        <translation>Tabelle speichern: nicht jetzt</translation>
    </message>
    <message>
        <source>Copy the picture: not now</source>
        <translation>Bild kopieren: nicht jetzt</translation>
    </message>
    <message>
        <source>Copy the table: not now</source>
        <translation>Tabelle kopieren: nicht jetzt</translation>
    </message>
    <message>
        <source>nothing of that kind is visible; go to a panel that has one</source>
        <translation>nichts dieser Art ist sichtbar; zu einer Ansicht gehen, die es hat</translation>
    </message>
    <message>
        <source>Fold norms</source>
        <translation>Normen falten</translation>
    </message>
    <message>
        <source>Norms and batch norms go into the layers behind them; needs no data</source>
        <translation>Normen und Batch-Normen gehen in die Schichten dahinter ein; braucht keine Daten</translation>
    </message>
    <message>
        <source>Equalize</source>
        <translation>Angleichen</translation>
    </message>
    <message>
        <source>Evens out the ranges of channels between neighbouring layers; needs no data</source>
        <translation>Gleicht die Bereiche der Kanäle benachbarter Schichten an; braucht keine Daten</translation>
    </message>
    <message>
        <source>Scales the weights of channels with large inputs up; uses the calibration data</source>
        <translation>Vergrößert die Gewichte von Kanälen mit großen Eingaben; nutzt die Kalibrierdaten</translation>
    </message>
    <message>
        <source>Moves outliers from inputs into weights; uses the calibration data</source>
        <translation>Verschiebt Ausreißer aus den Eingaben in die Gewichte; nutzt die Kalibrierdaten</translation>
    </message>
    <message>
        <source>Rotation</source>
        <translation>Drehung</translation>
    </message>
    <message>
        <source>Rotates the heads, and the residual stream where that is predicted to gain</source>
        <translation>Dreht die Köpfe, und den Residualstrom, wo das laut Vorhersage gewinnt</translation>
    </message>
    <message>
        <source>Rotation of heads</source>
        <translation>Drehung der Köpfe</translation>
    </message>
    <message>
        <source>Rotates values within each attention head; needs no data</source>
        <translation>Dreht die Values in jedem Attention-Kopf; braucht keine Daten</translation>
    </message>
    <message>
        <source>Rotation while running</source>
        <translation>Drehung beim Ausführen</translation>
    </message>
    <message>
        <source>Rotates inputs behind activation functions; compressed-tensors folders alone can say so</source>
        <translation>Dreht Eingaben hinter Aktivierungsfunktionen; nur compressed-tensors-Ordner können das angeben</translation>
    </message>
    <message>
        <source>Bias correction</source>
        <translation>Bias-Korrektur</translation>
    </message>
    <message>
        <source>Corrects the mean error of each output; uses the calibration data</source>
        <translation>Berichtigt den mittleren Fehler jeder Ausgabe; nutzt die Kalibrierdaten</translation>
    </message>
    <message>
        <source>Norm re-estimation</source>
        <translation>Normen neu schätzen</translation>
    </message>
    <message>
        <source>Takes batch norms' statistics again; uses the calibration data</source>
        <translation>Bestimmt die Statistik der Batch-Normen neu; nutzt die Kalibrierdaten</translation>
    </message>
    <message>
        <source>rel. error</source>
        <translation>rel. Fehler</translation>
    </message>
    <message>
        <source>embedding</source>
        <translation>Einbettung</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>Attention</translation>
    </message>
    <message>
        <source>conv transpose</source>
        <translation>transponierte Faltung</translation>
    </message>
    <message>
        <source>recurrent</source>
        <translation>rekurrent</translation>
    </message>
    <message>
        <source>experts</source>
        <translation>Experten</translation>
    </message>
    <message>
        <source>matrix</source>
        <translation>Matrix</translation>
    </message>
    <message>
        <source>linear</source>
        <translation>linear</translation>
    </message>
    <message>
        <source>loss per MB</source>
        <translation>Verlust je MB</translation>
    </message>
    <message>
        <source>a CPU kernel has none</source>
        <translation>ein CPU-Kernel hat keine</translation>
    </message>
    <message>
        <source>a library's kernel, or timed by an older version</source>
        <translation>Kernel einer Bibliothek, oder mit einer älteren Version gemessen</translation>
    </message>
    <message>
        <source>– ({w})</source>
        <translation>– ({w})</translation>
    </message>
    <message>
        <source>not installed</source>
        <translation>nicht installiert</translation>
    </message>
    <message>
        <source>llama.cpp: GGUF files</source>
        <translation>llama.cpp: GGUF-Dateien</translation>
    </message>
    <message>
        <source>transformers: compressed-tensors folders, as vLLM loads them</source>
        <translation>transformers: compressed-tensors-Ordner, wie vLLM sie lädt</translation>
    </message>
    <message>
        <source>transformers: torchao folders</source>
        <translation>transformers: torchao-Ordner</translation>
    </message>
    <message>
        <source>mlx-lm: MLX folders</source>
        <translation>mlx-lm: MLX-Ordner</translation>
    </message>
    <message>
        <source>ONNX Runtime: ONNX files</source>
        <translation>ONNX Runtime: ONNX-Dateien</translation>
    </message>
    <message>
        <source>OpenVINO: ONNX files</source>
        <translation>OpenVINO: ONNX-Dateien</translation>
    </message>
    <message>
        <source>the program that runs the exported file; auto is the one that the file, the target or the model is for</source>
        <translation>das Programm, das die exportierte Datei ausführt; auto ist das, für das die Datei, das Ziel oder das Modell gedacht ist</translation>
    </message>
    <message>
        <source>the one of the file, the target or the model</source>
        <translation>die der Datei, des Ziels oder des Modells</translation>
    </message>
    <message>
        <source>Floating-point model too</source>
        <translation>Auch das Gleitkommamodell</translation>
    </message>
    <message>
        <source>run the model as it is in the same runtime, as a row beside the plan</source>
        <translation>das Modell unverändert in derselben Laufzeit ausführen, als Zeile neben dem Plan</translation>
    </message>
    <message>
        <source>Exported file</source>
        <translation>Exportierte Datei</translation>
    </message>
    <message>
        <source>the exported file to run; it must hold what the plan says, bit for bit</source>
        <translation>die exportierte Datei; sie muss Bit für Bit enthalten, was der Plan sagt</translation>
    </message>
    <message>
        <source>tokens of each sample after which the whole distribution of the next one is compared</source>
        <translation>Token jedes Beispiels, nach denen die ganze Verteilung des nächsten verglichen wird</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>Threads</translation>
    </message>
    <message>
        <source>threads of the runtime</source>
        <translation>Threads der Laufzeit</translation>
    </message>
    <message>
        <source>half the processors</source>
        <translation>die Hälfte der Prozessoren</translation>
    </message>
    <message>
        <source>Numbers</source>
        <translation>Zahlen</translation>
    </message>
    <message>
        <source>Divergence from floating point</source>
        <translation>Abstand zum Gleitkommamodell</translation>
    </message>
    <message>
        <source>The task's own</source>
        <translation>Der der Aufgabe</translation>
    </message>
    <message>
        <source>Calibrated correction</source>
        <translation>Kalibrierte Korrektur</translation>
    </message>
    <message>
        <source>Measured loss</source>
        <translation>Gemessener Verlust</translation>
    </message>
    <message>
        <source>Predicted loss</source>
        <translation>Vorhergesagter Verlust</translation>
    </message>
    <message>
        <source>Predicted together</source>
        <translation>Gemeinsam vorhergesagt</translation>
    </message>
    <message>
        <source>Together</source>
        <translation>Gemeinsam</translation>
    </message>
    <message>
        <source>Samples after these</source>
        <translation>Beispiele danach</translation>
    </message>
    <message>
        <source>Samples before these</source>
        <translation>Beispiele davor</translation>
    </message>
    <message>
        <source>The sessions differ here</source>
        <translation>Hier unterscheiden sich die Sitzungen</translation>
    </message>
    <message>
        <source>all timed kernels together</source>
        <translation>alle gemessenen Kernel zusammen</translation>
    </message>
    <message>
        <source>as planned</source>
        <translation>wie geplant</translation>
    </message>
    <message>
        <source>Tables (*.csv)</source>
        <translation>Tabellen (*.csv)</translation>
    </message>
    <message>
        <source>Pages (*.html)</source>
        <translation>Seiten (*.html)</translation>
    </message>
    <message>
        <source>Documents (*.pdf)</source>
        <translation>Dokumente (*.pdf)</translation>
    </message>
    <message>
        <source>{}, {n} more</source>
        <translation>{}, {n} weitere</translation>
    </message>
    <message>
        <source>{} does not exist; expected {w}</source>
        <translation>{} gibt es nicht; erwartet: {w}</translation>
    </message>
    <message>
        <source>Choose &amp;None</source>
        <translation>&amp;Nichts wählen</translation>
    </message>
    <message>
        <source>Choose &amp;All</source>
        <translation>A&amp;lles wählen</translation>
    </message>
    <message>
        <source>AWQ</source>
        <translation>AWQ</translation>
    </message>
    <message>
        <source>SmoothQuant</source>
        <translation>SmoothQuant</translation>
    </message>
    <message>
        <source>a quantized Hugging Face folder (GPTQ, AWQ, compressed-tensors, bitsandbytes, ModelOpt, AutoRound, MLX, ...), an .onnx file, a Hugging Face folder (config.json and .safetensors), a Python file with a factory function, a .pt2 exported program, a .safetensors file or folder, a .gguf file, or a .pt/.pth state dict</source>
        <translation>ein quantisierter Hugging-Face-Ordner (GPTQ, AWQ, compressed-tensors, bitsandbytes, ModelOpt, AutoRound, MLX, ...), eine .onnx-Datei, ein Hugging-Face-Ordner (config.json und .safetensors), eine Python-Datei mit einer Funktion, die das Modell baut, ein exportiertes Programm (.pt2), eine .safetensors-Datei oder ein Ordner davon, eine .gguf-Datei oder ein State-Dict (.pt, .pth)</translation>
    </message>
    <message>
        <source>Save the picture</source>
        <translation>Bild speichern</translation>
    </message>
    <message>
        <source>Save the table</source>
        <translation>Tabelle speichern</translation>
    </message>
    <message>
        <source>{w} vs {} everywhere</source>
        <translation>{w} gegenüber {} überall</translation>
    </message>
    <message>
        <source>PNG pictures (*.png);;SVG drawings (*.svg)</source>
        <translation>PNG-Bilder (*.png);;SVG-Zeichnungen (*.svg)</translation>
    </message>
    <message>
        <source>PNG pictures (*.png)</source>
        <translation>PNG-Bilder (*.png)</translation>
    </message>
    <message>
        <source>SVG drawings (*.svg)</source>
        <translation>SVG-Zeichnungen (*.svg)</translation>
    </message>
    <message>
        <source>inputs</source>
        <translation>Eingaben</translation>
    </message>
    <message>
        <source>outputs</source>
        <translation>Ausgaben</translation>
    </message>
    <message>
        <source>The network is still being loaded; its layers are shown already</source>
        <translation>Das Netz wird noch geladen; seine Schichten sind schon zu sehen</translation>
    </message>
    <message>
        <source>The plan quantizes nothing; give layers a scheme first (F7).</source>
        <translation>Der Plan quantisiert nichts; zuerst Schichten ein Schema geben (F7).</translation>
    </message>
    <message>
        <source>loss {} as {}</source>
        <translation>Verlust {} als {}</translation>
    </message>
    <message>
        <source>No plan fits into {w}: the smallest possible takes {n} bytes, {n} bits per weight</source>
        <translation>Kein Plan passt in {w}: der kleinste mögliche hat {n} Bytes, {n} Bits je Gewicht</translation>
    </message>
    <message>
        <source>No plan fits into {w}: the least possible loss is {n}</source>
        <translation>Kein Plan passt in {w}: der kleinste mögliche Verlust ist {n}</translation>
    </message>
    <message>
        <source>No plan fits into {w}: the fastest possible takes {n} microseconds</source>
        <translation>Kein Plan passt in {w}: der schnellste mögliche braucht {n} Mikrosekunden</translation>
    </message>
    <message>
        <source>No plan fits into {w}</source>
        <translation>Kein Plan passt in {w}</translation>
    </message>
    <message>
        <source>no plan fits into {w}: the smallest possible takes {n} bytes, {n} bits per weight</source>
        <translation>kein Plan passt in {w}: der kleinste mögliche hat {n} Bytes, {n} Bits je Gewicht</translation>
    </message>
    <message>
        <source>no plan fits into {w}: the least possible loss is {n}</source>
        <translation>kein Plan passt in {w}: der kleinste mögliche Verlust ist {n}</translation>
    </message>
    <message>
        <source>no plan fits into {w}: the fastest possible takes {n} microseconds</source>
        <translation>kein Plan passt in {w}: der schnellste mögliche braucht {n} Mikrosekunden</translation>
    </message>
    <message>
        <source>no plan fits into {w}</source>
        <translation>kein Plan passt in {w}</translation>
    </message>
    <message>
        <source>raise the budget or allow smaller schemes</source>
        <translation>das Budget erhöhen oder kleinere Schemata zulassen</translation>
    </message>
    <message>
        <source>the rows add up to {n}, each layer as if it were the only one</source>
        <translation>die Zeilen ergeben zusammen {n}, jede Schicht, als wäre sie die einzige</translation>
    </message>
    <message>
        <source>Closed {}</source>
        <translation>{} geschlossen</translation>
    </message>
    <message>
        <source>Plan, this</source>
        <translation>Plan, diese</translation>
    </message>
    <message>
        <source>Plan, other</source>
        <translation>Plan, andere</translation>
    </message>
    <message>
        <source>The plan that was evaluated in this session</source>
        <translation>Der Plan, der in dieser Sitzung ausgewertet wurde</translation>
    </message>
    <message>
        <source>The plan that was evaluated in the other session</source>
        <translation>Der Plan, der in der anderen Sitzung ausgewertet wurde</translation>
    </message>
    <message>
        <source>The session's plan as it was evaluated last; where it was not, the plan that was evaluated last</source>
        <translation>Der Plan der Sitzung, wie er zuletzt ausgewertet wurde; sonst der Plan, der zuletzt ausgewertet wurde</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>Token/s</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>Bytes</translation>
    </message>
    <message>
        <source>variance</source>
        <translation>Varianz</translation>
    </message>
    <message>
        <source>NVIDIA compute capability 10.0 (Blackwell, data centre)</source>
        <translation>NVIDIA Compute Capability 10.0 (Blackwell, Rechenzentrum)</translation>
    </message>
    <message>
        <source>NVIDIA compute capability {} ({})</source>
        <translation>NVIDIA Compute Capability {} ({})</translation>
    </message>
    <message>
        <source>GB/s</source>
        <translation>GB/s</translation>
    </message>
    <message>
        <source>MB</source>
        <translation>MB</translation>
    </message>
    <message>
        <source>Tops</source>
        <translation>Tops</translation>
    </message>
    <message>
        <source>dB</source>
        <translation>dB</translation>
    </message>
    <message>
        <source>s</source>
        <translation>s</translation>
    </message>
    <message>
        <source>σ</source>
        <translation>σ</translation>
    </message>
    <message>
        <source>Drop to open {}</source>
        <translation>Ablegen öffnet {}</translation>
    </message>
    <message>
        <source>Drop one file or folder of this computer</source>
        <translation>Eine Datei oder einen Ordner dieses Rechners ablegen</translation>
    </message>
    <message>
        <source>Drop to calibrate on {}</source>
        <translation>Ablegen kalibriert mit {}</translation>
    </message>
    <message>
        <source>Drop to make {} the plan</source>
        <translation>Ablegen macht {} zum Plan</translation>
    </message>
    <message>
        <source>{} would save {} more and avoid {}, too</source>
        <translation>{} sparte {} mehr und vermiede auch {}</translation>
    </message>
    <message>
        <source>Estimating how long it takes</source>
        <translation>Schätzt, wie lange es dauert</translation>
    </message>
    <message>
        <source>Replaced the saved plan {}; undo brings it back</source>
        <translation>Der gespeicherte Plan {} ist ersetzt; Rückgängig bringt ihn zurück</translation>
    </message>
    <message>
        <source>Saved the current plan as {}</source>
        <translation>Aktueller Plan als {} gespeichert</translation>
    </message>
    <message>
        <source>measuring {}</source>
        <translation>Messen von {}</translation>
    </message>
    <message>
        <source>Choose another name</source>
        <translation>Einen anderen Namen wählen</translation>
    </message>
    <message>
        <source>the workbench itself gives the name {}</source>
        <translation>den Namen {} vergibt die Workbench selbst</translation>
    </message>
    <message>
        <source>{} quantizes linear modules stored outputs x inputs, not {w}</source>
        <translation>{} quantisiert lineare Module, die als Ausgänge x Eingänge gespeichert sind, nicht {w}</translation>
    </message>
    <message>
        <source>{} quantizes embeddings and linear modules stored outputs x inputs, not {w}</source>
        <translation>{} quantisiert Einbettungen und lineare Module, die als Ausgänge x Eingänge gespeichert sind, nicht {w}</translation>
    </message>
    <message>
        <source>{} quantize linear modules stored outputs x inputs, not {w}</source>
        <translation>{} quantisieren lineare Module, die als Ausgänge x Eingänge gespeichert sind, nicht {w}</translation>
    </message>
    <message>
        <source>ones that the model stores inputs x outputs</source>
        <translation>solche, die das Modell als Eingänge x Ausgänge speichert</translation>
    </message>
    <message>
        <source>weights of other modules, such as routers</source>
        <translation>Gewichte anderer Module, etwa Router</translation>
    </message>
    <message>
        <source>embedding ones</source>
        <translation>Einbettungen</translation>
    </message>
    <message>
        <source>experts ones</source>
        <translation>Experten</translation>
    </message>
    <message>
        <source>matrix ones</source>
        <translation>Matrizen</translation>
    </message>
    <message>
        <source>attention ones</source>
        <translation>Attention-Schichten</translation>
    </message>
    <message>
        <source>recurrent ones</source>
        <translation>rekurrente Schichten</translation>
    </message>
    <message>
        <source>conv1d ones</source>
        <translation>conv1d-Schichten</translation>
    </message>
    <message>
        <source>conv2d ones</source>
        <translation>conv2d-Schichten</translation>
    </message>
    <message>
        <source>conv3d ones</source>
        <translation>conv3d-Schichten</translation>
    </message>
    <message>
        <source>conv_transpose ones</source>
        <translation>conv_transpose-Schichten</translation>
    </message>
    <message>
        <source>{}: labels are rows of {n} shares that sum to 1, and no number of a class: without labels that are, such as the place of the largest share, no accuracy is measured</source>
        <translation>{}: Labels sind Zeilen von {n} Anteilen, deren Summe 1 ist, und keine Nummer einer Klasse: ohne solche Labels, etwa die Stelle des größten Anteils, wird keine Genauigkeit gemessen</translation>
    </message>
    <message>
        <source>{}: {} is left out, as the model takes no such array</source>
        <translation>{}: {} wird nicht gelesen, da das Modell kein solches Array nimmt</translation>
    </message>
    <message>
        <source>{}: {} are left out, as the model takes no such array</source>
        <translation>{}: {} werden nicht gelesen, da das Modell keine solchen Arrays nimmt</translation>
    </message>
    <message>
        <source>{} is no table: the column {} is left out</source>
        <translation>{} ist keine Tabelle: die Spalte {} wird nicht gelesen</translation>
    </message>
    <message>
        <source>{}: the stride is left out, as samples are no windows of running text</source>
        <translation>{}: die Schrittweite wird nicht beachtet, da die Proben keine Fenster fortlaufenden Texts sind</translation>
    </message>
    <message>
        <source>{}: the first {n} characters of 1 of {n} rows are read</source>
        <translation>{}: die ersten {n} Zeichen von 1 von {n} Zeilen werden gelesen</translation>
    </message>
    <message>
        <source>{}: the text of {n} of {n} rows, drawn at random, is read</source>
        <translation>{}: der Text von {n} von {n} zufällig gezogenen Zeilen wird gelesen</translation>
    </message>
    <message>
        <source>the calibration half of {} holds {n} samples: {n} of them, drawn at random, are taken (--samples)</source>
        <translation>die Hälfte für die Kalibrierung von {} enthält {n} Beispiele: {n} davon, zufällig gezogen, werden genommen (--samples)</translation>
    </message>
    <message>
        <source>the calibration half of {} holds {n} samples, {n} were asked for: all {n} are used</source>
        <translation>die Hälfte für die Kalibrierung von {} enthält {n} Beispiele, {n} wurden verlangt: alle {n} werden verwendet</translation>
    </message>
    <message>
        <source>the evaluation half of {} holds {n} samples: {n} of them, drawn at random, are taken (--samples)</source>
        <translation>die Hälfte für die Auswertung von {} enthält {n} Beispiele: {n} davon, zufällig gezogen, werden genommen (--samples)</translation>
    </message>
    <message>
        <source>the evaluation half of {} holds {n} samples, {n} were asked for: all {n} are used</source>
        <translation>die Hälfte für die Auswertung von {} enthält {n} Beispiele, {n} wurden verlangt: alle {n} werden verwendet</translation>
    </message>
    <message>
        <source>{} holds {n} samples, {n} were asked for: all {n} are used</source>
        <translation>{} enthält {n} Beispiele, {n} wurden verlangt: alle {n} werden verwendet</translation>
    </message>
    <message>
        <source>{} was calibrated on: only its other half is evaluated, {n} samples</source>
        <translation>{} diente der Kalibrierung: nur die andere Hälfte wird ausgewertet, {n} Beispiele</translation>
    </message>
    <message>
        <source>the session's {} data {} were run with {} pooling, the model has {} pooling now (modules.json, or a GGUF file's pooling_type); calibrate again</source>
        <translation>die {}-Daten {} der Sitzung liefen mit dem Pooling {}, das Modell hat jetzt das Pooling {} (modules.json oder pooling_type einer GGUF-Datei); bitte erneut kalibrieren</translation>
    </message>
    <message>
        <source>{} holds {n} samples: {n} of them, drawn at random, are taken (--samples)</source>
        <translation>{} enthält {n} Beispiele: {n} davon, zufällig gezogen, werden genommen (--samples)</translation>
    </message>
    <message>
        <source>{}: {n} of {n} samples repeat others: losses are as sure as {n} samples make them, and intervals are narrower than that</source>
        <translation>{}: {n} von {n} Beispielen wiederholen andere: Verluste sind so sicher, wie {n} Beispiele sie machen, und Intervalle sind enger</translation>
    </message>
    <message>
        <source>{}: labels are rows of 0 with a single 1, samples x {n}: its place is the class</source>
        <translation>{}: Labels sind Zeilen aus 0 mit einer einzigen 1, Beispiele x {n}: ihre Stelle ist die Klasse</translation>
    </message>
    <message>
        <source>{} says that it is quantized ({}), but none of its tensors is in a form that is read</source>
        <translation>{} soll quantisiert sein ({}), doch keiner der Tensoren hat eine Form, die gelesen wird</translation>
    </message>
    <message>
        <source>flipped</source>
        <translation>gewechselt</translation>
    </message>
    <message>
        <source>the {n} most changed, {n} flips among them</source>
        <translation>die {n} am stärksten geänderten, darunter {n} Wechsel</translation>
    </message>
    <message>
        <source>the {n} most changed, {n} flip among them</source>
        <translation>die {n} am stärksten geänderten, darunter {n} Wechsel</translation>
    </message>
    <message>
        <source>the layers' losses add up ({n} samples)</source>
        <translation>die Verluste der Schichten addieren sich ({n} Beispiele)</translation>
    </message>
    <message>
        <source>the layers' losses do not add up ({n} samples)</source>
        <translation>die Verluste der Schichten addieren sich nicht ({n} Beispiele)</translation>
    </message>
    <message>
        <source>the layers' losses add up ({n} sample)</source>
        <translation>die Verluste der Schichten addieren sich ({n} Beispiel)</translation>
    </message>
    <message>
        <source>the layers' losses do not add up ({n} sample)</source>
        <translation>die Verluste der Schichten addieren sich nicht ({n} Beispiel)</translation>
    </message>
    <message>
        <source>{w}: the layers' losses add up ({n} samples)</source>
        <translation>{w}: die Verluste der Schichten addieren sich ({n} Beispiele)</translation>
    </message>
    <message>
        <source>{w}: the layers' losses do not add up ({n} samples)</source>
        <translation>{w}: die Verluste der Schichten addieren sich nicht ({n} Beispiele)</translation>
    </message>
    <message>
        <source>{n} together and {n} one by one</source>
        <translation>{n} gemeinsam und {n} einzeln</translation>
    </message>
    <message>
        <source>× {n} (fitted)</source>
        <translation>× {n} (angepasst)</translation>
    </message>
    <message>
        <source>sample {n}, position {n}</source>
        <translation>Beispiel {n}, Position {n}</translation>
    </message>
    <message>
        <source>sample {n}, pixel {}</source>
        <translation>Beispiel {n}, Pixel {}</translation>
    </message>
    <message>
        <source>sample {n}</source>
        <translation>Beispiel {n}</translation>
    </message>
    <message>
        <source>sample {n}, {n} token</source>
        <translation>Beispiel {n}, {n} Token</translation>
    </message>
    <message>
        <source>sample {n}, {n} tokens</source>
        <translation>Beispiel {n}, {n} Token</translation>
    </message>
    <message>
        <source>sample {n}, label {}</source>
        <translation>Beispiel {n}, Label {}</translation>
    </message>
    <message>
        <source>sample {n}, label {}, {n} tokens</source>
        <translation>Beispiel {n}, Label {}, {n} Token</translation>
    </message>
    <message>
        <source>weights as they are</source>
        <translation>Gewichte, wie sie sind</translation>
    </message>
    <message>
        <source>inputs as they are</source>
        <translation>Eingaben, wie sie sind</translation>
    </message>
    <message>
        <source>outputs as they are</source>
        <translation>Ausgaben, wie sie sind</translation>
    </message>
    <message>
        <source>the same against {w}</source>
        <translation>gleich gegenüber {w}</translation>
    </message>
    <message>
        <source>{n}× as fast as floating point, batch {n}</source>
        <translation>{n}× so schnell wie Gleitkomma, Batch {n}</translation>
    </message>
    <message>
        <source>{} quantizes only one of the layers that share this tensor; it has to stay</source>
        <translation>{} quantisiert nur eine der Schichten, die diesen Tensor teilen; sie muss bleiben</translation>
    </message>
    <message>
        <source>{}: {n} samples, seed {n}, {}</source>
        <translation>{}: {n} Beispiele, Startwert {n}, {}</translation>
    </message>
    <message>
        <source>{n} nats, {n} to {n} ({w})</source>
        <translation>{n} nats, {n} bis {n} ({w})</translation>
    </message>
    <message>
        <source>keep it</source>
        <translation>unverändert lassen</translation>
    </message>
    <message>
        <source>keep it, or give it fp32</source>
        <translation>unverändert lassen oder fp32 geben</translation>
    </message>
    <message>
        <source>it shares its tensor with another layer, and only one of them could be quantized</source>
        <translation>sie teilt ihren Tensor mit einer anderen Schicht, und nur eine von beiden kann quantisiert werden</translation>
    </message>
    <message>
        <source>it lies in one tensor with {}, in {}, and cannot be in {}</source>
        <translation>sie liegt in einem Tensor mit {}, in {}, und kann nicht in {} sein</translation>
    </message>
    <message>
        <source>mlx-lm loads one tensor for each projection of the experts, which cannot be made of what the checkpoint stores of {}</source>
        <translation>mlx-lm lädt für jede Projektion der Experten einen Tensor, der sich aus dem, was der Checkpoint von {} speichert, nicht machen lässt</translation>
    </message>
    <message>
        <source>the checkpoint stores it in several tensors or in another shape</source>
        <translation>der Checkpoint speichert sie in mehreren Tensoren oder in anderer Form</translation>
    </message>
    <message>
        <source>llama.cpp reads {} in float32 alone</source>
        <translation>llama.cpp liest {} nur in float32</translation>
    </message>
    <message>
        <source>{n} GOP/s at {n} operations a byte</source>
        <translation>{n} GOP/s bei {n} Operationen je Byte</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>Ziel</translation>
    </message>
    <message>
        <source>sample {n}, row {n}, column {n}</source>
        <translation>Beispiel {n}, Zeile {n}, Spalte {n}</translation>
    </message>
    <message>
        <source>sample {n}, unknown</source>
        <translation>Beispiel {n}, unbekannt</translation>
    </message>
    <message>
        <source>loss {n} {} as {}, symmetric: ±{n} ({w})</source>
        <translation>Verlust {n} {} als {}, symmetrisch: ±{n} ({w})</translation>
    </message>
    <message>
        <source>loss {n} {} as {}, symmetric: ±{n}</source>
        <translation>Verlust {n} {} als {}, symmetrisch: ±{n}</translation>
    </message>
    <message>
        <source>predicted loss of rounding this input alone, {} per token or sample, lower is better: the squared error at every value, weighed with the gradients there in {w} ({w})</source>
        <translation>vorhergesagter Verlust, wenn nur diese Eingabe gerundet wird, {} je Token oder Beispiel, kleiner ist besser: der quadratische Fehler an jedem Wert, gewichtet mit den Gradienten dort, über {w} ({w})</translation>
    </message>
    <message>
        <source>Sum of the median times of the layers' kernels, one after another, at the smallest batch that was timed.
On {}.</source>
        <translation>Summe der Mediane der Kernel aller Schichten nacheinander, beim kleinsten gemessenen Batch.
Auf {}.</translation>
    </message>
    <message>
        <source>Share of the {w} outside the range; root mean square of the rounding error, in the tensor's own unit; ratio of signal to quantization noise in decibels, higher is better; {w}</source>
        <translation>Anteil außerhalb des Bereichs ({w}); quadratisches Mittel des Rundungsfehlers, in der Einheit des Tensors; Verhältnis von Signal zu Quantisierungsrauschen in Dezibel, größer ist besser; {w}</translation>
    </message>
    <message>
        <source>predicted loss of rounding this input alone, {} per token or sample, lower is better: the squared error at every value, weighed with the gradients there in {w}</source>
        <translation>vorhergesagter Verlust, wenn nur diese Eingabe gerundet wird, {} je Token oder Beispiel, kleiner ist besser: der quadratische Fehler an jedem Wert, gewichtet mit den Gradienten dort, über {w}</translation>
    </message>
    <message>
        <source>measured here with {n} thread: a copy of {n} MiB, an FP32 product of {n} × {n}</source>
        <translation>hier mit {n} Thread gemessen: eine Kopie von {n} MiB, ein FP32-Produkt von {n} × {n}</translation>
    </message>
    <message>
        <source>measured here with {n} threads: a copy of {n} MiB, an FP32 product of {n} × {n}</source>
        <translation>hier mit {n} Threads gemessen: eine Kopie von {n} MiB, ein FP32-Produkt von {n} × {n}</translation>
    </message>
    <message>
        <source>refused in {} of {} layers</source>
        <translation>abgelehnt in {} von {} Schichten</translation>
    </message>
    <message>
        <source>click a point to use its plan</source>
        <translation>ein Klick auf einen Punkt verwendet seinen Plan</translation>
    </message>
    <message>
        <source>the current plan has schemes that were not timed</source>
        <translation>der aktuelle Plan hat Schemata, die nicht gemessen wurden</translation>
    </message>
    <message>
        <source>its own rounding of inputs counts in the choice</source>
        <translation>sein eigenes Runden der Eingaben zählt bei der Wahl</translation>
    </message>
    <message>
        <source>{n} layer locked</source>
        <translation>{n} Schicht gesperrt</translation>
    </message>
    <message>
        <source>{n} layers locked</source>
        <translation>{n} Schichten gesperrt</translation>
    </message>
    <message>
        <source>it rounds inputs as well, which a search does not count yet</source>
        <translation>es rundet auch Eingaben, was eine Suche noch nicht zählt</translation>
    </message>
    <message>
        <source>llama.cpp rounds the inputs of quantized weights to 8 bits, in blocks of 32 or of 256 by the weights&apos; type, and the session does not know what that costs</source>
        <translation>llama.cpp rundet die Eingaben quantisierter Gewichte auf 8 Bit, in Blöcken von 32 oder von 256 je nach Typ der Gewichte, und die Sitzung weiß nicht, was das kostet</translation>
    </message>
    <message>
        <source>Sensitivity (F6) by the predicted KL of inputs has a search count it.</source>
        <translation>Die Empfindlichkeit (F6) nach der vorhergesagten KL der Eingaben lässt eine Suche das mitzählen.</translation>
    </message>
    <message>
        <source>The best plans of all sizes are being worked out…</source>
        <translation>Die besten Pläne aller Größen werden gerade berechnet…</translation>
    </message>
    <message>
        <source>Note: {w}</source>
        <translation>Hinweis: {w}</translation>
    </message>
    <message>
        <source>Note on the model</source>
        <translation>Hinweis zum Modell</translation>
    </message>
    <message>
        <source>field “{w}” of Export</source>
        <translation>Feld „{w}“ von „Exportieren“</translation>
    </message>
    <message>
        <source>Options</source>
        <translation>Optionen</translation>
    </message>
    <message>
        <source>the defaults</source>
        <translation>die Vorgaben</translation>
    </message>
    <message>
        <source>options of that form, separated by commas, such as tool=auto-round for a recipe</source>
        <translation>Optionen dieser Form, durch Kommas getrennt, etwa tool=auto-round für ein Rezept</translation>
    </message>
    <message>
        <source>field “{w}”</source>
        <translation>Feld „{w}“</translation>
    </message>
    <message>
        <source>the weights of {} hold NaN or infinite values</source>
        <translation>die Gewichte von {} enthalten NaN oder unendliche Werte</translation>
    </message>
    <message>
        <source>the weights are those that {}() in {} makes: they are random unless it loads them itself; give a file of weights (--weights)</source>
        <translation>die Gewichte sind die, die {}() in {} erzeugt: sie sind zufällig, wenn die Funktion sie nicht selbst lädt; eine Datei mit Gewichten angeben (--weights)</translation>
    </message>
    <message>
        <source>the network rotates inputs of layers while it runs ({} in transform_config of config.json); exports to compressed-tensors alone can say so</source>
        <translation>das Netz dreht Eingaben von Schichten, während es läuft ({} in transform_config von config.json); nur Exporte nach compressed-tensors können das festhalten</translation>
    </message>
    <message>
        <source>the network rotates outputs of layers while it runs ({} in transform_config of config.json); exports to compressed-tensors alone can say so</source>
        <translation>das Netz dreht Ausgaben von Schichten, während es läuft ({} in transform_config von config.json); nur Exporte nach compressed-tensors können das festhalten</translation>
    </message>
    <message>
        <source>the network rotates inputs and outputs of layers while it runs ({} in transform_config of config.json); exports to compressed-tensors alone can say so</source>
        <translation>das Netz dreht Eingaben und Ausgaben von Schichten, während es läuft ({} in transform_config von config.json); nur Exporte nach compressed-tensors können das festhalten</translation>
    </message>
    <message>
        <source>the files have queries and keys rotated alike while the model runs ({}), which leaves their products as they are and is left out; a KV cache is rounded without it</source>
        <translation>laut den Dateien werden Queries und Keys gleich gedreht, während das Modell läuft ({}); ihre Produkte bleiben dabei gleich, deshalb fehlt es hier; ein KV-Cache wird ohne das gerundet</translation>
    </message>
    <message>
        <source>the model&apos;s folder says nothing of how its pictures are made (preprocessor_config.json; for timm, pretrained_cfg of config.json): they are {w} and scaled to 0..1; add the file, or give arrays (.npz of pixel_values)</source>
        <translation>der Ordner des Modells sagt nicht, wie seine Bilder gemacht werden (preprocessor_config.json; für timm pretrained_cfg von config.json): sie werden {w} und auf 0..1 skaliert; die Datei ergänzen oder Arrays angeben (.npz mit pixel_values)</translation>
    </message>
    <message>
        <source>as they come</source>
        <translation>genommen, wie sie sind,</translation>
    </message>
    <message>
        <source>resized to {n} x {n} pixels</source>
        <translation>auf {n} x {n} Pixel gebracht</translation>
    </message>
    <message>
        <source>all tokens through all experts changed nothing (--all-experts): no layer holds the weights of several experts (those that are modules of their own see the tokens that they are sent)</source>
        <translation>alle Token durch alle Experten zu schicken änderte nichts (--all-experts): keine Schicht enthält die Gewichte mehrerer Experten (Experten als eigene Module sehen die Token, die ihnen geschickt werden)</translation>
    </message>
    <message>
        <source>{n} of {n} experts of {} saw fewer than {n} tokens, one for each of their inputs (expert {n} saw {n}); calibrate on more samples</source>
        <translation>{n} von {n} Experten von {} sahen weniger als {n} Token, eines für jede ihrer Eingaben (Experte {n} sah {n}); mit mehr Beispielen kalibrieren</translation>
    </message>
    <message>
        <source>{n} of {n} experts of {} saw fewer than {n} tokens, one for each of their inputs (expert {n} saw {n}); calibrate on more samples, or let all experts see all tokens (--all-experts)</source>
        <translation>{n} von {n} Experten von {} sahen weniger als {n} Token, eines für jede ihrer Eingaben (Experte {n} sah {n}); mit mehr Beispielen kalibrieren, oder alle Experten alle Token sehen lassen (--all-experts)</translation>
    </message>
    <message>
        <source>the experts of {} saw only the tokens that were sent to them: their module is not given the chosen experts, so that others cannot be chosen</source>
        <translation>die Experten von {} sahen nur die Token, die ihnen geschickt wurden: ihr Modul bekommt die gewählten Experten nicht, sodass sich keine anderen wählen lassen</translation>
    </message>
    <message>
        <source>the experts of {} and {n} more saw only the tokens that were sent to them: their module is not given the chosen experts, so that others cannot be chosen</source>
        <translation>die Experten von {} und {n} weiteren sahen nur die Token, die ihnen geschickt wurden: ihr Modul bekommt die gewählten Experten nicht, sodass sich keine anderen wählen lassen</translation>
    </message>
    <message>
        <source>not scored: {}, which only choose what others see, and on these data choose the same whatever the scheme; longer samples may show what rounding costs, else lock them</source>
        <translation>nicht bewertet: {}; sie wählen nur, was andere sehen, und wählen auf diesen Daten bei jedem Schema dasselbe; längere Beispiele zeigen vielleicht, was Runden kostet, sonst sperren</translation>
    </message>
    <message>
        <source>measured, not predicted, since no gradient tells what it decides: {}</source>
        <translation>gemessen, nicht vorhergesagt, weil kein Gradient sagt, was dies entscheidet: {}</translation>
    </message>
    <message>
        <source>every loss is 0: on these data the output is the same whatever the weights, so that no plan can be found by them; the data may lack what the model answers about (a table&apos;s cells, a mask, labels to predict)</source>
        <translation>jeder Verlust ist 0: auf diesen Daten ist die Ausgabe bei jedem Gewicht gleich, sodass sich danach kein Plan finden lässt; den Daten fehlt vielleicht, worüber das Modell Auskunft gibt (Zellen einer Tabelle, eine Maske, vorherzusagende Labels)</translation>
    </message>
    <message>
        <source>on these data the output is the same however {} is rounded (states of zeros, a gate that stays shut, a part that is not read): they count as unused, and a search leaves them as they are</source>
        <translation>auf diesen Daten ist die Ausgabe gleich, wie auch immer {} gerundet wird (Zustände aus Nullen, ein Tor, das zu bleibt, ein Teil, der nicht gelesen wird): es gilt als unbenutzt, und eine Suche lässt es, wie es ist</translation>
    </message>
    <message>
        <source>on these data the output is the same however {} are rounded (states of zeros, a gate that stays shut, a part that is not read): they count as unused, and a search leaves them as they are</source>
        <translation>auf diesen Daten ist die Ausgabe gleich, wie auch immer {} gerundet werden (Zustände aus Nullen, ein Tor, das zu bleibt, ein Teil, der nicht gelesen wird): sie gelten als unbenutzt, und eine Suche lässt sie, wie sie sind</translation>
    </message>
    <message>
        <source>{w}: the memory ran out, so it ran with {}</source>
        <translation>{w}: der Speicher reichte nicht, deshalb lief es mit {}</translation>
    </message>
    <message>
        <source>an importance matrix has no gradients: rtn-weighted and the metric output_error work with it alone; a predicted loss, GPTQ and ranges of inputs need data</source>
        <translation>eine Importance-Matrix hat keine Gradienten: allein mit ihr gehen rtn-weighted und das Maß output_error; ein vorhergesagter Verlust, GPTQ und Bereiche von Eingaben brauchen Daten</translation>
    </message>
    <message>
        <source>The engine process does not start</source>
        <translation>Der Rechenprozess startet nicht</translation>
    </message>
    <message>
        <source>{}; the next job tries it again</source>
        <translation>{}; der nächste Auftrag versucht es noch einmal</translation>
    </message>
    <message>
        <source>Found the model again</source>
        <translation>Das Modell ist wiedergefunden</translation>
    </message>
    <message>
        <source>{}; the open session goes on with it</source>
        <translation>{}; die offene Sitzung geht damit weiter</translation>
    </message>
    <message>
        <source>the session&apos;s model {} is not there any more; put it back, or open it where it is now: the window&apos;s open session then goes on with it</source>
        <translation>das Modell der Sitzung, {}, ist nicht mehr da; es zurücklegen oder dort öffnen, wo es jetzt ist: die im Fenster offene Sitzung geht dann damit weiter</translation>
    </message>
    <message>
        <source>experts whose matrices the checkpoint stores as one tensor</source>
        <translation>Experten, deren Matrizen der Checkpoint als einen Tensor speichert</translation>
    </message>
    <message>
        <source>&amp;Use This Target and Plan</source>
        <translation>Dieses Ziel und seinen Plan &amp;verwenden</translation>
    </message>
    <message>
        <source>Best Tar&amp;get for a Budget</source>
        <translation>Bestes Ziel für ein B&amp;udget</translation>
    </message>
    <message>
        <source>Best target for this budget</source>
        <translation>Bestes Ziel für dieses Budget</translation>
    </message>
    <message>
        <source>Best target for a budget</source>
        <translation>Bestes Ziel für ein Budget</translation>
    </message>
    <message>
        <source>Finds the best plan of every target within the budget, and shows them side by side</source>
        <translation>Den besten Plan jedes Ziels im Budget suchen und sie nebeneinander zeigen</translation>
    </message>
    <message>
        <source>Of the best plan; what the target&apos;s own rounding of inputs adds counts where it is known</source>
        <translation>Des besten Plans; was das Ziel durch sein eigenes Runden der Eingaben hinzufügt, zählt, wo es bekannt ist</translation>
    </message>
    <message>
        <source>Over the layers that the target quantizes</source>
        <translation>Über die Schichten, die das Ziel quantisiert</translation>
    </message>
    <message>
        <source>Remark</source>
        <translation>Bemerkung</translation>
    </message>
    <message>
        <source>Targets</source>
        <translation>Ziele</translation>
    </message>
    <message>
        <source>The best plan of every target within {}, by the scored schemes that it runs.</source>
        <translation>Der beste Plan jedes Ziels mit höchstens {}, aus den bewerteten Schemata, die es ausführt.</translation>
    </message>
    <message>
        <source>The bytes of all tensors in the target&apos;s own form</source>
        <translation>Die Bytes aller Tensoren in der Form des Ziels</translation>
    </message>
    <message>
        <source>Compare targets within {}</source>
        <translation>Ziele vergleichen: höchstens {}</translation>
    </message>
    <message>
        <source>Best plan for {}</source>
        <translation>Bester Plan für {}</translation>
    </message>
    <message>
        <source>it runs none of the schemes that were scored; score some that it runs ({})</source>
        <translation>es führt keines der bewerteten Schemata aus; solche bewerten, die es ausführt ({})</translation>
    </message>
    <message>
        <source>searching for {}</source>
        <translation>Suche für {}</translation>
    </message>
    <message>
        <source>the tensors take {n} bytes, {} more than the plan counts: {w}</source>
        <translation>die Tensoren brauchen {n} Bytes, {} mehr, als der Plan zählt: {w}</translation>
    </message>
    <message>
        <source>torchao stores an integer of any width in a byte, and a zero point beside each scale</source>
        <translation>torchao speichert eine Ganzzahl jeder Breite in einem Byte und einen Nullpunkt neben jeder Skala</translation>
    </message>
    <message>
        <source>MLX stores a bias beside each scale, for symmetric integers too, which -asym-zfp16 makes use of</source>
        <translation>MLX speichert einen Bias neben jeder Skala, auch für symmetrische Ganzzahlen; -asym-zfp16 macht davon Gebrauch</translation>
    </message>
    <message>
        <source>GPTQ stores zero points for symmetric integers too, and an index for each input of a layer</source>
        <translation>GPTQ speichert Nullpunkte auch für symmetrische Ganzzahlen und einen Index für jeden Eingang einer Schicht</translation>
    </message>
    <message>
        <source>compressed-tensors stores each layer&apos;s shape, and fills rows up to words of four bytes</source>
        <translation>compressed-tensors speichert die Form jeder Schicht und füllt Zeilen zu Wörtern von vier Bytes auf</translation>
    </message>
    <message>
        <source>scales must be {} (-s{}), not {}</source>
        <translation>Skalen müssen {} sein (-s{}), nicht {}</translation>
    </message>
    <message>
        <source>the losses of single layers are measured, {n} x {n} cells: of so small a network that takes little time, and random draws of its second order would scatter</source>
        <translation>die Verluste einzelner Schichten sind gemessen, {n} x {n} Zellen: bei einem so kleinen Netz dauert das nicht lange, und Zufallsziehungen seiner zweiten Ordnung würden streuen</translation>
    </message>
    <message>
        <source>the files round the inputs of {n} layers ({}) to {}, which no plan can say; they are left as computed</source>
        <translation>die Dateien runden die Eingaben von {n} Schichten ({}) auf {}, was kein Plan sagen kann; sie bleiben, wie sie berechnet werden</translation>
    </message>
    <message>
        <source>the files round the inputs of {n} layers ({}) to {}, which no plan can say; the plan rounds them to {}</source>
        <translation>die Dateien runden die Eingaben von {n} Schichten ({}) auf {}, was kein Plan sagen kann; der Plan rundet sie auf {}</translation>
    </message>
    <message>
        <source>the files store keys and values as {}; a plan rounds them token by token, so they are left as computed</source>
        <translation>die Dateien speichern Keys und Values als {}; ein Plan rundet sie Token für Token, deshalb bleiben sie, wie sie berechnet werden</translation>
    </message>
    <message>
        <source>{} holds {} in FP8 with scales beside it, and matrices with weight_scale(_inv) are read; save it with one matrix for each expert</source>
        <translation>{} enthält {} in FP8 mit Skalen daneben, und gelesen werden Matrizen mit weight_scale(_inv); mit einer Matrix für jeden Experten speichern</translation>
    </message>
    <message>
        <source>{} has {n} scales for {n} columns</source>
        <translation>{} hat {n} Skalen für {n} Spalten</translation>
    </message>
    <message>
        <source>the files clip the inputs of each expert of {n} layers ({}) to a range of its own, which no plan can say; the plan has the widest</source>
        <translation>die Dateien schneiden die Eingaben jedes Experten von {n} Schichten ({}) auf einen eigenen Bereich zu, was kein Plan sagen kann; der Plan hat den weitesten</translation>
    </message>
    <message>
        <source>{} holds {} in FP8 with scales, and config.json does not say by which method (quantization_config); fetch the folder again, with all of its .json files</source>
        <translation>{} enthält {} in FP8 mit Skalen, und config.json sagt nicht, nach welchem Verfahren (quantization_config); den Ordner noch einmal holen, mit allen .json-Dateien</translation>
    </message>
    <message>
        <source>{} is a folder, not a session; one that holds a model opens as a model</source>
        <translation>{} ist ein Ordner, keine Sitzung; einer mit einem Modell öffnet sich als Modell</translation>
    </message>
    <message>
        <source>the engine does not start</source>
        <translation>der Rechenprozess startet nicht</translation>
    </message>
    <message>
        <source>{} does not run the file: {w}</source>
        <translation>{} führt die Datei nicht aus: {w}</translation>
    </message>
    <message>
        <source>it was ended by the signal {}</source>
        <translation>der Prozess wurde durch das Signal {} beendet</translation>
    </message>
    <message>
        <source>the system does so where memory is short</source>
        <translation>das System tut das, wenn der Speicher knapp ist</translation>
    </message>
    <message>
        <source>it ended without an answer</source>
        <translation>der Prozess endete ohne Antwort</translation>
    </message>
    <message>
        <source>locked are {}, which stay as they are stored: {n} bytes (a plan of one scheme gives them that scheme first)</source>
        <translation>gesperrt sind {}, die bleiben, wie sie gespeichert sind: {n} Bytes (ein Plan mit einem Schema gibt ihnen das zuerst)</translation>
    </message>
    <message>
        <source>ModelOpt&apos;s {} scales the inputs of {} and others first: not read yet</source>
        <translation>{} von ModelOpt skaliert zuerst die Eingaben von {} und anderen: das wird noch nicht gelesen</translation>
    </message>
    <message>
        <source>{} is in ModelOpt&apos;s {}; of its formats FP8 and NVFP4 are read</source>
        <translation>{} liegt in {} von ModelOpt vor; von dessen Formaten werden FP8 und NVFP4 gelesen</translation>
    </message>
    <message>
        <source>{} is already quantized ({}), and of those {} are read; open the floating-point model it came from</source>
        <translation>{} ist schon quantisiert ({}), und gelesen werden davon {}; das Gleitkommamodell öffnen, aus dem es stammt</translation>
    </message>
    <message>
        <source>it is empty</source>
        <translation>sie ist leer</translation>
    </message>
    <message>
        <source>{} runs no scheme of this search for {w}: {w}</source>
        <translation>{} führt kein Schema dieser Suche aus für {w}: {w}</translation>
    </message>
    <message>
        <source>score and allow schemes that it runs</source>
        <translation>Schemata bewerten und erlauben, die es ausführt</translation>
    </message>
    <message>
        <source>{} quantizes no {w} layers</source>
        <translation>{} quantisiert keine Schichten der Art {w}</translation>
    </message>
    <message>
        <source>it runs no {w} layers</source>
        <translation>es führt keine Schichten der Art {w} aus</translation>
    </message>
    <message>
        <source>its activations are quantized but its weights are not</source>
        <translation>ihre Aktivierungen sind quantisiert, ihre Gewichte nicht</translation>
    </message>
    <message>
        <source>models stored as {o} are run so, not {}</source>
        <translation>so werden Modelle ausgeführt, die als {o} gespeichert sind, nicht {}</translation>
    </message>
    <message>
        <source>weights must be {o}, not {}</source>
        <translation>Gewichte müssen {o} sein, nicht {}</translation>
    </message>
    <message>
        <source>activations must be {o}, not {w}</source>
        <translation>Aktivierungen müssen {o} sein, nicht {w}</translation>
    </message>
    <message>
        <source>inputs must be {o}, not {w}</source>
        <translation>Eingaben müssen {o} sein, nicht {w}</translation>
    </message>
    <message>
        <source>weights must be symmetric</source>
        <translation>Gewichte müssen symmetrisch sein</translation>
    </message>
    <message>
        <source>weights must be asymmetric</source>
        <translation>Gewichte müssen asymmetrisch sein</translation>
    </message>
    <message>
        <source>activations must be symmetric</source>
        <translation>Aktivierungen müssen symmetrisch sein</translation>
    </message>
    <message>
        <source>activations must be asymmetric</source>
        <translation>Aktivierungen müssen asymmetrisch sein</translation>
    </message>
    <message>
        <source>one scale per {o} is needed for weights, not per {w}</source>
        <translation>für Gewichte ist eine Skala je {o} nötig, nicht je {w}</translation>
    </message>
    <message>
        <source>one scale per {o} is needed for activations, not per {w}</source>
        <translation>für Aktivierungen ist eine Skala je {o} nötig, nicht je {w}</translation>
    </message>
    <message>
        <source>zero points must be whole numbers</source>
        <translation>Nullpunkte müssen ganze Zahlen sein</translation>
    </message>
    <message>
        <source>zero points must be floating, in the format of the scales (-zfp16)</source>
        <translation>Nullpunkte müssen Gleitkommazahlen im Format der Skalen sein (-zfp16)</translation>
    </message>
    <message>
        <source>groups of {o} are needed, not of {}</source>
        <translation>nötig sind Gruppen von {o}, nicht von {}</translation>
    </message>
    <message>
        <source>outputs must be a multiple of {n}, the layer has {n}</source>
        <translation>die Ausgänge müssen ein Vielfaches von {n} sein, die Schicht hat {n}</translation>
    </message>
    <message>
        <source>inputs must be a multiple of {n}, the layer has {n}</source>
        <translation>die Eingänge müssen ein Vielfaches von {n} sein, die Schicht hat {n}</translation>
    </message>
    <message>
        <source>the layer is stored as {}, and there is no floating point</source>
        <translation>die Schicht ist als {} gespeichert, und es gibt kein Gleitkomma</translation>
    </message>
    <message>
        <source>the layer is stored as {}, and there is only {}</source>
        <translation>die Schicht ist als {} gespeichert, und es gibt nur {}</translation>
    </message>
    <message>
        <source>nothing runs</source>
        <translation>nichts wird ausgeführt</translation>
    </message>
    <message>
        <source>or</source>
        <translation>oder</translation>
    </message>
    <message>
        <source>tensor</source>
        <translation>Tensor</translation>
    </message>
    <message>
        <source>group</source>
        <translation>Gruppe</translation>
    </message>
    <message>
        <source>token</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>floating-point</source>
        <translation>Gleitkomma</translation>
    </message>
    <message>
        <source>stored as 16 bits</source>
        <translation>in 16 Bit gespeichert</translation>
    </message>
    <message>
        <source>tables in 8 bits, not packed</source>
        <translation>Tabellen in 8 Bit, nicht gepackt</translation>
    </message>
    <message>
        <source>weights decoded to floating point before the product</source>
        <translation>Gewichte vor dem Produkt in Gleitkomma umgerechnet</translation>
    </message>
    <message>
        <source>widened to FP32</source>
        <translation>auf FP32 erweitert</translation>
    </message>
    <message>
        <source>dynamic activations</source>
        <translation>dynamische Aktivierungen</translation>
    </message>
    <message>
        <source>static INT8 inputs</source>
        <translation>statische Eingaben in INT8</translation>
    </message>
    <message>
        <source>INT8 inputs by token</source>
        <translation>Eingaben in INT8 je Token</translation>
    </message>
    <message>
        <source>INT8 with zero points, inputs by token</source>
        <translation>INT8 mit Nullpunkten, Eingaben je Token</translation>
    </message>
    <message>
        <source>INT8 with zero points, static inputs</source>
        <translation>INT8 mit Nullpunkten, statische Eingaben</translation>
    </message>
    <message>
        <source>FP8 inputs</source>
        <translation>Eingaben in FP8</translation>
    </message>
    <message>
        <source>NVFP4 inputs</source>
        <translation>Eingaben in NVFP4</translation>
    </message>
    <message>
        <source>INT4 weights</source>
        <translation>Gewichte in INT4</translation>
    </message>
    <message>
        <source>NVFP4 weights (Marlin)</source>
        <translation>Gewichte in NVFP4 (Marlin)</translation>
    </message>
    <message>
        <source>W4A16 experts (Marlin)</source>
        <translation>W4A16, Experten (Marlin)</translation>
    </message>
    <message>
        <source>W8A16 experts (Marlin)</source>
        <translation>W8A16, Experten (Marlin)</translation>
    </message>
    <message>
        <source>packed experts</source>
        <translation>gepackte Experten</translation>
    </message>
    <message>
        <source>one zero point</source>
        <translation>ein Nullpunkt</translation>
    </message>
    <message>
        <source>blocks</source>
        <translation>Blöcke</translation>
    </message>
    <message>
        <source>MXFP4 and MXFP8</source>
        <translation>MXFP4 und MXFP8</translation>
    </message>
    <message>
        <source>4 and 8 bits in small blocks</source>
        <translation>4 und 8 Bit in kleinen Blöcken</translation>
    </message>
    <message>
        <source>2 bits</source>
        <translation>2 Bit</translation>
    </message>
    <message>
        <source>3 bits</source>
        <translation>3 Bit</translation>
    </message>
    <message>
        <source>4 bits</source>
        <translation>4 Bit</translation>
    </message>
    <message>
        <source>8 bits</source>
        <translation>8 Bit</translation>
    </message>
    <message>
        <source>DequantizeLinear, INT4 weights</source>
        <translation>DequantizeLinear, Gewichte in INT4</translation>
    </message>
    <message>
        <source>DequantizeLinear, weights only</source>
        <translation>DequantizeLinear, nur Gewichte</translation>
    </message>
    <message>
        <source>QDQ, static activations</source>
        <translation>QDQ, statische Aktivierungen</translation>
    </message>
    <message>
        <source>QDQ, static activations, transposed convolutions</source>
        <translation>QDQ, statische Aktivierungen, transponierte Faltungen</translation>
    </message>
    <message>
        <source>FP16 vector arithmetic</source>
        <translation>FP16-Vektorrechnung</translation>
    </message>
    <message>
        <source>FP16 tensor cores</source>
        <translation>FP16-Tensorkerne</translation>
    </message>
    <message>
        <source>BF16 tensor cores</source>
        <translation>BF16-Tensorkerne</translation>
    </message>
    <message>
        <source>FP8 tensor cores</source>
        <translation>FP8-Tensorkerne</translation>
    </message>
    <message>
        <source>INT4 tensor cores</source>
        <translation>INT4-Tensorkerne</translation>
    </message>
    <message>
        <source>INT8 tensor cores</source>
        <translation>INT8-Tensorkerne</translation>
    </message>
    <message>
        <source>block-scaled MX tensor cores, at the FP8 rate</source>
        <translation>MX-Tensorkerne mit Blockskalen, so schnell wie FP8</translation>
    </message>
    <message>
        <source>block-scaled MXFP4 tensor cores</source>
        <translation>MXFP4-Tensorkerne mit Blockskalen</translation>
    </message>
    <message>
        <source>block-scaled NVFP4 tensor cores</source>
        <translation>NVFP4-Tensorkerne mit Blockskalen</translation>
    </message>
    <message>
        <source>AMX BF16 tiles</source>
        <translation>AMX-Kacheln in BF16</translation>
    </message>
    <message>
        <source>AMX INT8 tiles</source>
        <translation>AMX-Kacheln in INT8</translation>
    </message>
    <message>
        <source>AVX-512 VNNI dot products</source>
        <translation>AVX-512-VNNI-Skalarprodukte</translation>
    </message>
    <message>
        <source>INT4 weights widened to INT8, INT8 dot products</source>
        <translation>Gewichte in INT4, auf INT8 erweitert, INT8-Skalarprodukte</translation>
    </message>
    <message>
        <source>INT8 systolic array (static activation ranges, symmetric weights)</source>
        <translation>systolisches Feld in INT8 (statische Bereiche der Aktivierungen, symmetrische Gewichte)</translation>
    </message>
    <message>
        <source>SDOT and SMMLA</source>
        <translation>SDOT und SMMLA</translation>
    </message>
    <message>
        <source>NVIDIA compute capability {} (Blackwell, data centre)</source>
        <translation>NVIDIA, Compute Capability {} (Blackwell, Rechenzentrum)</translation>
    </message>
    <message>
        <source>NVIDIA compute capability {}</source>
        <translation>NVIDIA, Compute Capability {}</translation>
    </message>
    <message>
        <source>evaluating</source>
        <translation>Auswertung</translation>
    </message>
    <message>
        <source>noise and gradients</source>
        <translation>Rauschen und Gradienten</translation>
    </message>
    <message>
        <source>took {} and {} of memory ({} and {} were estimated)</source>
        <translation>dauerte {} und brauchte {} Speicher ({} und {} waren geschätzt)</translation>
    </message>
    <message>
        <source>took {} and {} of memory ({} and {} were estimated), and {} to compile kernels, once on a machine</source>
        <translation>dauerte {} und brauchte {} Speicher ({} und {} waren geschätzt), dazu {}, um Kernel zu kompilieren, einmal je Rechner</translation>
    </message>
    <message>
        <source>embeddings at few bits cost more than predicted, as measured; all losses of these layers are raised accordingly, at most by the factor behind the name: {}</source>
        <translation>Einbettungen mit wenigen Bits kosten gemessen mehr als vorhergesagt; alle Verluste dieser Schichten sind entsprechend angehoben, höchstens um den Faktor hinter dem Namen: {}</translation>
    </message>
    <message>
        <source>int{n} to int{n}</source>
        <translation>int{n} bis int{n}</translation>
    </message>
    <message>
        <source>manual</source>
        <translation>von Hand</translation>
    </message>
    <message>
        <source>moving-average</source>
        <translation>gleitender Mittelwert</translation>
    </message>
    <message>
        <source>the engine does not start: {}; the next job tries it again</source>
        <translation>der Rechenprozess startet nicht: {}; der nächste Auftrag versucht es wieder</translation>
    </message>
    <message>
        <source>cancelled; the engine did not stop and is restarting</source>
        <translation>abgebrochen; der Rechenprozess hielt nicht an und startet neu</translation>
    </message>
    <message>
        <source>cancelled before it started</source>
        <translation>abgebrochen, bevor es begann</translation>
    </message>
    <message>
        <source>the workbench is closing</source>
        <translation>die Workbench wird geschlossen</translation>
    </message>
    <message>
        <source>the engine process ended during the job: {w}; it is restarting</source>
        <translation>der Rechenprozess endete während des Auftrags: {w}; er startet neu</translation>
    </message>
    <message>
        <source>it was killed, by the system perhaps because memory ran out</source>
        <translation>er wurde beendet, vom System vielleicht, weil der Speicher ausging</translation>
    </message>
    <message>
        <source>it ended with exit code {n}</source>
        <translation>er endete mit dem Code {n}</translation>
    </message>
    <message>
        <source>{w} failed with {}: {w}</source>
        <translation>{w}: gescheitert mit {}: {w}</translation>
    </message>
    <message>
        <source>{}: the memory ran out; use fewer samples or a smaller batch, or close other programs</source>
        <translation>{}: der Speicher ging aus; weniger Beispiele oder kleinere Batches verwenden oder andere Programme schließen</translation>
    </message>
    <message>
        <source>the workbench is closing; no further job can be started</source>
        <translation>die Workbench wird geschlossen; es kann kein Auftrag mehr beginnen</translation>
    </message>
    <message>
        <source>{} is a plan; open its model first</source>
        <translation>{} ist ein Plan; zuerst sein Modell öffnen</translation>
    </message>
    <message>
        <source>{} was not trusted</source>
        <translation>{} wurde nicht vertraut</translation>
    </message>
    <message>
        <source>{w}; choose another target</source>
        <translation>{w}; ein anderes Ziel wählen</translation>
    </message>
    <message>
        <source>{w}; install it: pip install --upgrade &apos;{}&apos;</source>
        <translation>{w}; installieren: pip install --upgrade &apos;{}&apos;</translation>
    </message>
    <message>
        <source>the package {} is of version {}, and at least {} is needed</source>
        <translation>das Paket {} hat die Version {}, und mindestens {} ist nötig</translation>
    </message>
    <message>
        <source>{} that do not fit into memory cannot be put on the disk, at {}: {w}; free some of it, name another folder ({}), or allow more memory (--memory)</source>
        <translation>{}, die nicht in den Speicher passen, können nicht auf die Platte nach {} gelegt werden: {w}; etwas davon frei machen, einen anderen Ordner nennen ({}) oder mehr Speicher erlauben (--memory)</translation>
    </message>
    <message>
        <source>{} is {w}; expected {}</source>
        <translation>{} ist {w}; erwartet wurde {}</translation>
    </message>
    <message>
        <source>{} does not exist; expected {}</source>
        <translation>{} gibt es nicht; erwartet wurde {}</translation>
    </message>
    <message>
        <source>{} does not exist{}; expected {}</source>
        <translation>{} gibt es nicht{}; erwartet wurde {}</translation>
    </message>
    <message>
        <source>{} is {w}, not a regular file or a folder; copy what it gives into a file</source>
        <translation>{} ist {w}, keine gewöhnliche Datei und kein Ordner; was es liefert, in eine Datei kopieren</translation>
    </message>
    <message>
        <source>{} holds only pickled weights (.bin), and a pickle can run code when it is opened; convert them to safetensors (model.save_pretrained writes it) and open that</source>
        <translation>{} enthält nur Gewichte als Pickle (.bin), und ein Pickle kann beim Öffnen Code ausführen; sie in safetensors umwandeln (model.save_pretrained schreibt das) und das öffnen</translation>
    </message>
    <message>
        <source>{} holds only pickled weights (pytorch_model.bin), and a pickle can run code when it is opened; convert it to safetensors where it is trusted (model.save_pretrained writes it) and open that</source>
        <translation>{} enthält nur Gewichte als Pickle (pytorch_model.bin), und ein Pickle kann beim Öffnen Code ausführen; dort, wo ihm vertraut wird, in safetensors umwandeln (model.save_pretrained schreibt das) und das öffnen</translation>
    </message>
    <message>
        <source>{} is a folder with nothing that is a model; expected {}</source>
        <translation>{} ist ein Ordner ohne ein Modell; erwartet wurde {}</translation>
    </message>
    <message>
        <source>{} is not a model itself; open one of the folders in it: {}</source>
        <translation>{} ist selbst kein Modell; einen der Ordner darin öffnen: {}</translation>
    </message>
    <message>
        <source>{} is refused: {}, which can run code or fill the memory when it is opened; export the model again with plain tensors (torch.export.save), or save its weights as safetensors</source>
        <translation>{} wird abgelehnt: {}, was beim Öffnen Code ausführen oder den Speicher füllen kann; das Modell mit einfachen Tensoren neu exportieren (torch.export.save) oder seine Gewichte als safetensors speichern</translation>
    </message>
    <message>
        <source>{} is not an exported program or is damaged: {w}</source>
        <translation>{} ist kein exportiertes Programm oder beschädigt: {w}</translation>
    </message>
    <message>
        <source>{} takes {}, which is not a tensor; export it with tensors and constants as its only inputs</source>
        <translation>{} nimmt {}, was kein Tensor ist; es nur mit Tensoren und Konstanten als Eingaben exportieren</translation>
    </message>
    <message>
        <source>{} returns no tensor of floating-point numbers, so there is no loss to measure</source>
        <translation>{} liefert keinen Tensor aus Gleitkommazahlen, also gibt es keinen Verlust zu messen</translation>
    </message>
    <message>
        <source>the data hold {}; the program also needs {}</source>
        <translation>die Daten enthalten {}; das Programm braucht auch {}</translation>
    </message>
    <message>
        <source>torch.export cannot load {}: {}; export the model again</source>
        <translation>torch.export kann {} nicht laden: {}; das Modell neu exportieren</translation>
    </message>
    <message>
        <source>{}: {} has changed since the model was opened, and weights are read from it when they are needed; open the model again</source>
        <translation>{}: {} hat sich geändert, seit das Modell geöffnet wurde, und Gewichte werden daraus gelesen, wenn sie gebraucht werden; das Modell neu öffnen</translation>
    </message>
    <message>
        <source>the architecture {} is not {w} here; its weights can be looked at, planned for and exported</source>
        <translation>die Architektur {} wird hier nicht {w}; ihre Gewichte lassen sich ansehen, planen und exportieren</translation>
    </message>
    <message>
        <source>it says {} blocks and has {} tensors; it is damaged or incomplete</source>
        <translation>sie nennt {} Blöcke und hat {} Tensoren; sie ist beschädigt oder unvollständig</translation>
    </message>
    <message>
        <source>{} holds tensors of the type {}, which is not read yet</source>
        <translation>{} enthält Tensoren des Typs {}, der noch nicht gelesen wird</translation>
    </message>
    <message>
        <source>its metadata do not make a {}: {}</source>
        <translation>ihre Metadaten ergeben kein {}: {}</translation>
    </message>
    <message>
        <source>its metadata lack {}</source>
        <translation>ihren Metadaten fehlt {}</translation>
    </message>
    <message>
        <source>the tensor {} of its architecture is missing</source>
        <translation>der Tensor {} ihrer Architektur fehlt</translation>
    </message>
    <message>
        <source>the tensor {} has {}, its metadata ask for {}</source>
        <translation>der Tensor {} hat {}, ihre Metadaten verlangen {}</translation>
    </message>
    <message>
        <source>{} has a config.json but no .safetensors file; fetch the weights too</source>
        <translation>{} hat eine config.json, aber keine .safetensors-Datei; auch die Gewichte holen</translation>
    </message>
    <message>
        <source>{} names no model_type, so it is not a Hugging Face model; for the weights alone open the .safetensors</source>
        <translation>{} nennt keinen model_type, ist also kein Modell von Hugging Face; für die Gewichte allein die .safetensors öffnen</translation>
    </message>
    <message>
        <source>{}: transformers {} does not have {}, and the Python code that config.json names for it (auto_map) is never run; install a version that has it, or open the .safetensors file for the weights alone</source>
        <translation>{}: transformers {} hat {} nicht, und der Python-Code, den config.json dafür nennt (auto_map), wird nie ausgeführt; eine Version installieren, die es hat, oder für die Gewichte allein die .safetensors-Datei öffnen</translation>
    </message>
    <message>
        <source>{}: config.json names the class {}, which transformers {} does not have; install a version that has it, or open the .safetensors file for the weights alone</source>
        <translation>{}: config.json nennt die Klasse {}, die transformers {} nicht hat; eine Version installieren, die sie hat, oder für die Gewichte allein die .safetensors-Datei öffnen</translation>
    </message>
    <message>
        <source>{}: {} tensors are missing or of another shape than config.json says: {}; the configuration and the weights do not belong together</source>
        <translation>{}: {} Tensoren fehlen oder haben eine andere Form, als config.json sagt: {}; Konfiguration und Gewichte gehören nicht zusammen</translation>
    </message>
    <message>
        <source>{}: the weights have {}, which config.json does not count; the configuration and the weights do not belong together</source>
        <translation>{}: die Gewichte haben {}, was config.json nicht zählt; Konfiguration und Gewichte gehören nicht zusammen</translation>
    </message>
    <message>
        <source>{}: config.json, with its defaults, describes a network of {} weights, and the files hold {}; the configuration and the weights do not belong together</source>
        <translation>{}: config.json beschreibt mit ihren Vorgaben ein Netz mit {} Gewichten, und die Dateien enthalten {}; Konfiguration und Gewichte gehören nicht zusammen</translation>
    </message>
    <message>
        <source>{} cannot be opened: {w}</source>
        <translation>{} kann nicht geöffnet werden: {w}</translation>
    </message>
    <message>
        <source>{} cannot be read as JSON: {}</source>
        <translation>{} kann nicht als JSON gelesen werden: {}</translation>
    </message>
    <message>
        <source>Hugging Face models need the package transformers: {}</source>
        <translation>Modelle von Hugging Face brauchen das Paket transformers: {}</translation>
    </message>
    <message>
        <source>transformers cannot load {}: {}</source>
        <translation>transformers kann {} nicht laden: {}</translation>
    </message>
    <message>
        <source>{} counts {} blocks in {}, but the weights are {} tensors; the file is damaged, or belongs to other weights</source>
        <translation>{} zählt {} Blöcke in {}, die Gewichte aber sind {} Tensoren; die Datei ist beschädigt oder gehört zu anderen Gewichten</translation>
    </message>
    <message>
        <source>{} says {} is {}, but the weights are {}; the file is damaged, or belongs to other weights</source>
        <translation>{} sagt, {} sei {}, die Gewichte aber sind {}; die Datei ist beschädigt oder gehört zu anderen Gewichten</translation>
    </message>
    <message>
        <source>{} holds {} .onnx files ({}); open one of them</source>
        <translation>{} enthält {} .onnx-Dateien ({}); eine davon öffnen</translation>
    </message>
    <message>
        <source>{}: its weights do not fit its operators: {}</source>
        <translation>{}: seine Gewichte passen nicht zu seinen Operatoren: {}</translation>
    </message>
    <message>
        <source>it also takes {} ({})</source>
        <translation>es nimmt auch {} ({})</translation>
    </message>
    <message>
        <source>ONNX Runtime does not run {}: {}</source>
        <translation>ONNX Runtime führt {} nicht aus: {}</translation>
    </message>
    <message>
        <source>{} has no function {} that builds the network{}; define it or name another one (factory)</source>
        <translation>{} hat keine Funktion {}, die das Netz baut{}; sie definieren oder eine andere nennen (Funktion)</translation>
    </message>
    <message>
        <source>{}() in {} returned {}, expected a torch.nn.Module</source>
        <translation>{}() in {} lieferte {}, erwartet wurde ein torch.nn.Module</translation>
    </message>
    <message>
        <source>the weights {} do not exist; give a .safetensors file or a .pt/.pth state dict</source>
        <translation>die Gewichte {} gibt es nicht; eine .safetensors-Datei oder ein State-Dict (.pt, .pth) angeben</translation>
    </message>
    <message>
        <source>{} does not fit the network: {}; give this network&apos;s</source>
        <translation>{} passt nicht zum Netz: {}; die Datei dieses Netzes angeben</translation>
    </message>
    <message>
        <source>{} does not fit the network: {}</source>
        <translation>{} passt nicht zum Netz: {}</translation>
    </message>
    <message>
        <source>opening {} runs it as a Python program; allow it (--trust) only if you know it</source>
        <translation>beim Öffnen läuft {} als Python-Programm; nur erlauben (--trust), wenn es bekannt ist</translation>
    </message>
    <message>
        <source>running {} failed: {}: {}</source>
        <translation>{} scheiterte beim Ausführen: {}: {}</translation>
    </message>
    <message>
        <source>{}() in {} failed: {}: {}</source>
        <translation>{}() in {} scheiterte: {}: {}</translation>
    </message>
    <message>
        <source>{} says OUTPUT = {}, expected one of {}</source>
        <translation>{} sagt OUTPUT = {}, erwartet wurde eines von {}</translation>
    </message>
    <message>
        <source>{} names files outside its folder; shards must lie beside the index</source>
        <translation>{} nennt Dateien außerhalb seines Ordners; die Teile müssen neben dem Verzeichnis der Teile liegen</translation>
    </message>
    <message>
        <source>{} names shards that are missing: {}; fetch them too</source>
        <translation>{} nennt Teile, die fehlen: {}; auch diese holen</translation>
    </message>
    <message>
        <source>{} holds {} indexes of shards; open one of {}</source>
        <translation>{} enthält {} Verzeichnisse von Teilen; eines davon öffnen: {}</translation>
    </message>
    <message>
        <source>{} is not an index of safetensors shards: it has no readable weight_map</source>
        <translation>{} ist kein Verzeichnis von safetensors-Teilen: es hat keine lesbare weight_map</translation>
    </message>
    <message>
        <source>the weights of {}, {} GB as stored, do not fit into the memory of {}: {}; choose the stored dtype (--dtype stored), another device, or the CPU (--device cpu)</source>
        <translation>die Gewichte von {}, gespeichert {} GB, passen nicht in den Speicher von {}: {}; die gespeicherten Zahlen (--dtype stored), ein anderes Gerät oder die CPU (--device cpu) wählen</translation>
    </message>
    <message>
        <source>{} holds {} without named tensors; a state dict was expected</source>
        <translation>{} enthält {} ohne benannte Tensoren; erwartet wurde ein State-Dict</translation>
    </message>
    <message>
        <source>{} is {w}; save it dense (tensor.to_dense(), tensor.contiguous())</source>
        <translation>{} ist {w}; dicht speichern (tensor.to_dense(), tensor.contiguous())</translation>
    </message>
    <message>
        <source>{} has the dtype {}, known are {}; convert it to one of them</source>
        <translation>{} hat den Typ {}, bekannt sind {}; in einen davon umwandeln</translation>
    </message>
    <message>
        <source>{} is a pickled module ({}), and opening it would run the code that it contains; {w}</source>
        <translation>{} ist ein Modul als Pickle ({}), und beim Öffnen liefe der Code darin; {w}</translation>
    </message>
    <message>
        <source>{} was not written by torch.save or is damaged ({}); fetch it again or {w}</source>
        <translation>{} wurde nicht von torch.save geschrieben oder ist beschädigt ({}); neu holen oder {w}</translation>
    </message>
    <message>
        <source>{} holds several sets of tensors: {}; save the one of the network alone</source>
        <translation>{} enthält mehrere Sätze von Tensoren: {}; nur den des Netzes speichern</translation>
    </message>
    <message>
        <source>{} needs about {} of memory to run, {} available; close other programs, run it in its own dtype (--dtype stored) if that is less than float32, use a machine with more memory, or open a .safetensors file of it for its weights</source>
        <translation>{} braucht zum Ausführen etwa {} Speicher, {} verfügbar; andere Programme schließen, es im gespeicherten Typ ausführen (--dtype stored), wenn das weniger als float32 ist, einen Rechner mit mehr Speicher nehmen oder für die Gewichte eine .safetensors-Datei davon öffnen</translation>
    </message>
    <message>
        <source>{} holds {}; {w}; allow more (--memory), or close other programs</source>
        <translation>{} enthält {}; {w}; mehr erlauben (--memory) oder andere Programme schließen</translation>
    </message>
    <message>
        <source>no kernel was timed{}; time the kernels first</source>
        <translation>kein Kernel wurde gemessen{}; zuerst die Kernel messen</translation>
    </message>
    <message>
        <source>{} must be a finite number; got {}</source>
        <translation>{} muss eine endliche Zahl sein; angegeben war {}</translation>
    </message>
    <message>
        <source>the {w} table has no column for {}; score that scheme first or leave it out of the search</source>
        <translation>die Tabelle {w} hat keine Spalte für {}; das Schema zuerst bewerten oder in der Suche weglassen</translation>
    </message>
    <message>
        <source>these layers must share one scheme but no scheme is allowed to all: {}</source>
        <translation>diese Schichten müssen ein Schema teilen, aber keines ist allen erlaubt: {}</translation>
    </message>
    <message>
        <source>these layers must share one scheme but are locked differently: {}; unlock all but one</source>
        <translation>diese Schichten müssen ein Schema teilen, sind aber verschieden gesperrt: {}; alle außer einer entsperren</translation>
    </message>
    <message>
        <source>the locked layer {} is not a layer of the model</source>
        <translation>die gesperrte Schicht {} gehört nicht zum Modell</translation>
    </message>
    <message>
        <source>the pattern {} matches no layer of the model</source>
        <translation>das Muster {} passt auf keine Schicht des Modells</translation>
    </message>
    <message>
        <source>{} is locked to {}, but its pattern allows only {}; unlock it or allow that scheme</source>
        <translation>{} ist auf {} gesperrt, ihr Muster erlaubt aber nur {}; sie entsperren oder das Schema erlauben</translation>
    </message>
    <message>
        <source>{} is not a layer of the model</source>
        <translation>{} ist keine Schicht des Modells</translation>
    </message>
    <message>
        <source>its patterns have {} wildcards and {} characters of regular expressions; at most {} and {} are read: give layers by their names</source>
        <translation>seine Muster haben {} Platzhalter und {} Zeichen regulärer Ausdrücke; höchstens {} und {} werden gelesen: Schichten mit ihren Namen angeben</translation>
    </message>
    <message>
        <source>the rule {}... is longer than {} characters; use a pattern with *</source>
        <translation>die Regel {}... ist länger als {} Zeichen; ein Muster mit * verwenden</translation>
    </message>
    <message>
        <source>the rule {} is not a valid regular expression: {}</source>
        <translation>die Regel {} ist kein gültiger regulärer Ausdruck: {}</translation>
    </message>
    <message>
        <source>a KV cache in {} needs {}, and no layer that is free to change is one</source>
        <translation>ein KV-Cache in {} braucht {}, und keine änderbare Schicht ist eine solche</translation>
    </message>
    <message>
        <source>the plan {} does not read back from JSON as it was written; please report this</source>
        <translation>der Plan {} wird aus JSON nicht so gelesen, wie er geschrieben wurde; bitte melden</translation>
    </message>
    <message>
        <source>the rule {} matches no layer of the model; correct the pattern or remove the rule</source>
        <translation>die Regel {} passt auf keine Schicht des Modells; das Muster berichtigen oder die Regel entfernen</translation>
    </message>
    <message>
        <source>{} is not a plan: an object with &quot;type&quot;: &quot;{}&quot; was expected</source>
        <translation>{} ist kein Plan: erwartet wurde ein Objekt mit &quot;type&quot;: &quot;{}&quot;</translation>
    </message>
    <message>
        <source>{} has version {}, this workbench reads version {} and older; update the workbench</source>
        <translation>{} hat die Version {}, diese Workbench liest Version {} und ältere; die Workbench aktualisieren</translation>
    </message>
    <message>
        <source>{} is not a plan: it holds {}, which is not JSON</source>
        <translation>{} ist kein Plan: darin steht {}, was kein JSON ist</translation>
    </message>
    <message>
        <source>{} is not a plan: byte {} is not UTF-8; a JSON file was expected</source>
        <translation>{} ist kein Plan: Byte {} ist kein UTF-8; erwartet wurde eine JSON-Datei</translation>
    </message>
    <message>
        <source>the plan {} cannot be read: {w}</source>
        <translation>der Plan {} kann nicht gelesen werden: {w}</translation>
    </message>
    <message>
        <source>{} is not a plan: an object has the member {} twice; remove one of them</source>
        <translation>{} ist kein Plan: ein Objekt hat das Element {} zweimal; eines davon entfernen</translation>
    </message>
    <message>
        <source>{} is not JSON: {} at line {n}, column {n}</source>
        <translation>{} ist kein JSON: {} in Zeile {n}, Spalte {n}</translation>
    </message>
    <message>
        <source>{} is not a plan: it is nested too deeply or holds a number that is too long</source>
        <translation>{} ist kein Plan: zu tief verschachtelt, oder eine Zahl ist zu lang</translation>
    </message>
    <message>
        <source>no plan was found within {w}: the errors of its layers cost more together than separately, {} at the least; raise the budget or allow larger schemes</source>
        <translation>kein Plan wurde innerhalb von {w} gefunden: die Fehler seiner Schichten kosten zusammen mehr als einzeln, mindestens {}; das Budget erhöhen oder größere Schemata erlauben</translation>
    </message>
    <message>
        <source>{}: not scored, though the output depends on it. Score it (with data that reach it), or lock what has no score, to keep what the plan gives it</source>
        <translation>{}: nicht bewertet, obwohl die Ausgabe davon abhängt. Sie bewerten (mit Daten, die sie erreichen) oder sperren, was keinen Wert hat, damit es bleibt, wie der Plan es vorsieht</translation>
    </message>
    <message>
        <source>a search for microseconds needs kernel times; time the kernels first, or search by bytes or bits per weight</source>
        <translation>eine Suche nach Mikrosekunden braucht Zeiten der Kernel; zuerst die Kernel messen oder nach Bytes oder Bits je Gewicht suchen</translation>
    </message>
    <message>
        <source>no plan within all budgets was found in {n} s, though there may be one; raise one</source>
        <translation>in {n} s wurde kein Plan innerhalb aller Budgets gefunden, obwohl es einen geben kann; eines erhöhen</translation>
    </message>
    <message>
        <source>{w} needs at least {} of memory, one sample at a time and with all that can lie on the disk there, and {} {w}; allow more, or use shorter samples (--window)</source>
        <translation>{w} braucht mindestens {} Speicher, ein Beispiel nach dem anderen und mit allem auf der Platte, was dort liegen kann, und {} {w}; mehr erlauben oder kürzere Beispiele verwenden (--window)</translation>
    </message>
    <message>
        <source>are free</source>
        <translation>sind frei</translation>
    </message>
    <message>
        <source>are allowed (--memory)</source>
        <translation>sind erlaubt (--memory)</translation>
    </message>
    <message>
        <source>{w} writes about {} at {}, where {} are free; free some of it, or name a folder on another disk</source>
        <translation>{w} schreibt etwa {} nach {}, wo {} frei sind; etwas davon frei machen oder einen Ordner auf einer anderen Platte nennen</translation>
    </message>
    <message>
        <source>the recovery folder {} cannot be written: {w}</source>
        <translation>in den Ordner für Wiederherstellung {} kann nicht geschrieben werden: {w}</translation>
    </message>
    <message>
        <source>expected a low of at most 0 and a high of at least 0, not both 0; got {} and {}</source>
        <translation>die Untergrenze muss höchstens 0 und die Obergrenze mindestens 0 sein, nicht beide 0; angegeben waren {} und {}</translation>
    </message>
    <message>
        <source>{} is not a session: it is a device or a pipe; choose a .qwb file of the workbench</source>
        <translation>{} ist keine Sitzung, sondern ein Gerät oder eine Pipe; eine .qwb-Datei der Workbench wählen</translation>
    </message>
    <message>
        <source>{} is not a session: the file is empty</source>
        <translation>{} ist keine Sitzung: die Datei ist leer</translation>
    </message>
    <message>
        <source>{} is not a session: it is not an HDF5 file; choose a .qwb file of the workbench</source>
        <translation>{} ist keine Sitzung: es ist keine HDF5-Datei; eine .qwb-Datei der Workbench wählen</translation>
    </message>
    <message>
        <source>the session {} holds {}, and {} of memory are free; it is damaged, or needs a machine with more memory</source>
        <translation>die Sitzung {} enthält {}, und {} Speicher sind frei; sie ist beschädigt oder braucht einen Rechner mit mehr Speicher</translation>
    </message>
    <message>
        <source>the session {} cannot be read: {w}</source>
        <translation>die Sitzung {} kann nicht gelesen werden: {w}</translation>
    </message>
    <message>
        <source>the session {} is damaged: {w}; {w}</source>
        <translation>die Sitzung {} ist beschädigt: {w}; {w}</translation>
    </message>
    <message>
        <source>the part {} is missing</source>
        <translation>der Teil {} fehlt</translation>
    </message>
    <message>
        <source>the part {} is missing: a group was expected</source>
        <translation>der Teil {} fehlt: erwartet wurde eine Gruppe</translation>
    </message>
    <message>
        <source>it is an HDF5 file, but not a session of the workbench</source>
        <translation>es ist eine HDF5-Datei, aber keine Sitzung der Workbench</translation>
    </message>
    <message>
        <source>it has version {}, this workbench reads version {} and older; update the workbench</source>
        <translation>sie hat die Version {}, diese Workbench liest Version {} und ältere; die Workbench aktualisieren</translation>
    </message>
    <message>
        <source>the session cannot be stored: {w}; nothing was written</source>
        <translation>die Sitzung kann nicht gespeichert werden: {w}; nichts wurde geschrieben</translation>
    </message>
    <message>
        <source>the session {} cannot be repaired: {w}</source>
        <translation>die Sitzung {} kann nicht repariert werden: {w}</translation>
    </message>
    <message>
        <source>it is damaged: {w}</source>
        <translation>sie ist beschädigt: {w}</translation>
    </message>
    <message>
        <source>none of it can be read: {w}</source>
        <translation>nichts davon kann gelesen werden: {w}</translation>
    </message>
    <message>
        <source>its edits belong to another model</source>
        <translation>ihre Änderungen gehören zu einem anderen Modell</translation>
    </message>
    <message>
        <source>the session holds no sensitivity table{}; compute the sensitivity first</source>
        <translation>die Sitzung enthält keine Tabelle der Empfindlichkeit{}; zuerst die Empfindlichkeit berechnen</translation>
    </message>
    <message>
        <source>{} stands where the session&apos;s lock belongs, but is not a plain file; remove it</source>
        <translation>{} steht, wo die Sperre der Sitzung hingehört, ist aber keine gewöhnliche Datei; sie entfernen</translation>
    </message>
    <message>
        <source>{} is being written by {}; wait for it and try again{w}</source>
        <translation>{} wird von {} geschrieben; darauf warten und es wieder versuchen{w}</translation>
    </message>
    <message>
        <source>{} holds another model now</source>
        <translation>{} enthält jetzt ein anderes Modell</translation>
    </message>
    <message>
        <source>{w}; the result is in {}</source>
        <translation>{w}; das Ergebnis steht in {}</translation>
    </message>
    <message>
        <source>no model is open; open a model or a session first</source>
        <translation>kein Modell ist offen; zuerst ein Modell oder eine Sitzung öffnen</translation>
    </message>
    <message>
        <source>the session names no {} data; calibrate first</source>
        <translation>die Sitzung nennt keine Daten ({}); zuerst kalibrieren</translation>
    </message>
    <message>
        <source>{} cannot be calibrated on data: {w}</source>
        <translation>{} kann nicht mit Daten kalibriert werden: {w}</translation>
    </message>
    <message>
        <source>{}: {} changed while it was read, so the result would mix two models and was discarded; open the model again, and repeat the step when nothing writes to that file</source>
        <translation>{}: {} änderte sich beim Lesen, das Ergebnis hätte zwei Modelle vermischt und wurde verworfen; das Modell neu öffnen und den Schritt wiederholen, wenn nichts in die Datei schreibt</translation>
    </message>
    <message>
        <source>the session has no evaluation of the plan {} on the data {}; evaluate first</source>
        <translation>die Sitzung hat keine Auswertung des Plans {} mit den Daten {}; zuerst auswerten</translation>
    </message>
    <message>
        <source>{} ran on {}, {} on other samples ({}); evaluate both on the same data to compare them sample by sample</source>
        <translation>{} lief mit {}, {} mit anderen Beispielen ({}); beide mit denselben Daten auswerten, um sie Beispiel für Beispiel zu vergleichen</translation>
    </message>
    <message>
        <source>{} holds no token windows; the runtimes read tokens: give a text or token windows</source>
        <translation>{} enthält keine Token-Fenster; die Laufzeiten lesen Token: einen Text oder Token-Fenster angeben</translation>
    </message>
    <message>
        <source>the samples of {} have {} tokens; at least 3 are needed</source>
        <translation>die Beispiele von {} haben {} Token; mindestens 3 sind nötig</translation>
    </message>
    <message>
        <source>{}: the device ran out of memory, and fewer samples at once are not possible ({}); use shorter samples (--window), the model in its own dtype (--dtype stored), another device, or the CPU (--device cpu)</source>
        <translation>{}: der Speicher des Geräts reicht nicht, und weniger Beispiele auf einmal sind nicht möglich ({}); kürzere Beispiele, das Modell im gespeicherten Typ, ein anderes Gerät oder die CPU verwenden</translation>
    </message>
    <message>
        <source>{} ends in {}, which {} does not write; give {}</source>
        <translation>{} endet auf {}, was {} nicht schreibt; {} angeben</translation>
    </message>
    <message>
        <source>{} cannot go to {}: there is no folder {}; create it or choose another</source>
        <translation>{} kann nicht nach {}: den Ordner {} gibt es nicht; ihn anlegen oder einen anderen wählen</translation>
    </message>
    <message>
        <source>{} cannot go to {}: the folder is read-only; choose another or allow it</source>
        <translation>{} kann nicht nach {}: der Ordner ist schreibgeschützt; einen anderen wählen oder es erlauben</translation>
    </message>
    <message>
        <source>{} is a folder, and {} writes a file; give its name: {}</source>
        <translation>{} ist ein Ordner, und {} schreibt eine Datei; ihren Namen angeben: {}</translation>
    </message>
    <message>
        <source>{} is a file, and {} writes a folder; choose the name of a new folder</source>
        <translation>{} ist eine Datei, und {} schreibt einen Ordner; den Namen eines neuen Ordners wählen</translation>
    </message>
    <message>
        <source>{} is a file of the model itself, which {} would replace; choose another name</source>
        <translation>{} ist eine Datei des Modells selbst, die {} ersetzen würde; einen anderen Namen wählen</translation>
    </message>
    <message>
        <source>the plan&apos;s transforms need calibration data; calibrate first</source>
        <translation>die Transformationen des Plans brauchen Kalibrierdaten; zuerst kalibrieren</translation>
    </message>
    <message>
        <source>the errors of single channels are not known under transforms; take them out of the plan first</source>
        <translation>die Fehler einzelner Kanäle sind mit Transformationen nicht bekannt; diese zuerst aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>{} runs no static inputs of 8 bits{}; leave inputs as they are (--inputs), or give int8-token</source>
        <translation>{} führt keine statischen Eingaben in 8 Bit aus{}; die Eingaben lassen, wie sie sind (--inputs), oder int8-token angeben</translation>
    </message>
    <message>
        <source>the audit&apos;s correction is of weights alone, and the plan rounds activations or the cache too; give a budget of bytes or bits per weight, or leave the correction out</source>
        <translation>die Korrektur der Prüfung gilt nur für Gewichte, und der Plan rundet auch Aktivierungen oder den Cache; ein Budget in Bytes oder Bits je Gewicht angeben oder die Korrektur weglassen</translation>
    </message>
    <message>
        <source>{} runs none of the schemes that were scored; score those that it runs</source>
        <translation>{} führt keines der bewerteten Schemata aus; die bewerten, die es ausführt</translation>
    </message>
    <message>
        <source>its weights in float32 do not fit into memory; they take {} of the disk, in temporary files into which each is decoded when it is first used</source>
        <translation>seine Gewichte passen in float32 nicht in den Speicher; sie belegen {} der Platte, in temporären Dateien, in die jedes beim ersten Gebrauch entpackt wird</translation>
    </message>
    <message>
        <source>there is no audit to correct by; audit a plan first</source>
        <translation>es gibt keine Prüfung, nach der zu korrigieren wäre; zuerst einen Plan prüfen</translation>
    </message>
    <message>
        <source>calibrating {} needs data: give {w}</source>
        <translation>{} zu kalibrieren braucht Daten: {w} angeben</translation>
    </message>
    <message>
        <source>evaluating {} needs data: calibrate first, or give {w}</source>
        <translation>{} auszuwerten braucht Daten: zuerst kalibrieren oder {w} angeben</translation>
    </message>
    <message>
        <source>the session&apos;s {} data {} has changed: {} was recorded, it has {} now; put the old file back, or calibrate again</source>
        <translation>die Daten der Sitzung ({}: {}) haben sich geändert: notiert war {}, jetzt {}; die alte Datei zurücklegen oder neu kalibrieren</translation>
    </message>
    <message>
        <source>the session&apos;s {} data {} cannot be opened again: {w}</source>
        <translation>die Daten der Sitzung ({}: {}) können nicht wieder geöffnet werden: {w}</translation>
    </message>
    <message>
        <source>a budget is needed to compare targets; give bits per weight or a size</source>
        <translation>um Ziele zu vergleichen, ist ein Budget nötig; Bits je Gewicht oder eine Größe angeben</translation>
    </message>
    <message>
        <source>{} cannot be trained: {w}</source>
        <translation>{} kann nicht trainiert werden: {w}</translation>
    </message>
    <message>
        <source>{} cannot be written to {}: there is no folder {}; create it or choose another</source>
        <translation>{} kann nicht nach {} geschrieben werden: den Ordner {} gibt es nicht; ihn anlegen oder einen anderen wählen</translation>
    </message>
    <message>
        <source>{} cannot be written to {}: it is {w}, which a file would replace; choose a file</source>
        <translation>{} kann nicht nach {} geschrieben werden: das ist {w}, was eine Datei ersetzen würde; eine Datei wählen</translation>
    </message>
    <message>
        <source>{} cannot be written to {}: {w}; choose another name</source>
        <translation>{} kann nicht nach {} geschrieben werden: {w}; einen anderen Namen wählen</translation>
    </message>
    <message>
        <source>{} cannot be written to {}: it is a folder; give the name of a file</source>
        <translation>{} kann nicht nach {} geschrieben werden: das ist ein Ordner; den Namen einer Datei angeben</translation>
    </message>
    <message>
        <source>{} cannot be written to {}: that is {w}, which it would replace; choose another name, or remove that file first</source>
        <translation>{} kann nicht nach {} geschrieben werden: das ist {w} und würde ersetzt; einen anderen Namen wählen oder die Datei zuerst entfernen</translation>
    </message>
    <message>
        <source>{w} could not be written to {}: {w}; what was there before is untouched. {w}, and try again</source>
        <translation>{w} konnte nicht nach {} geschrieben werden: {w}; was vorher dort war, ist unverändert. {w} und es wieder versuchen</translation>
    </message>
    <message>
        <source>the disk is full, or the file larger than allowed</source>
        <translation>die Platte ist voll, oder die Datei ist größer als erlaubt</translation>
    </message>
    <message>
        <source>the disk is full ({} MB are free)</source>
        <translation>die Platte ist voll ({} MB sind frei)</translation>
    </message>
    <message>
        <source>Make room or choose another place</source>
        <translation>Platz schaffen oder einen anderen Ort wählen</translation>
    </message>
    <message>
        <source>Choose another place, or correct that</source>
        <translation>Einen anderen Ort wählen oder das berichtigen</translation>
    </message>
    <message>
        <source>an HDF5 file, such as a session</source>
        <translation>eine HDF5-Datei, etwa eine Sitzung</translation>
    </message>
    <message>
        <source>an archive, such as a .pt, .pt2 or .npz file</source>
        <translation>ein Archiv, etwa eine .pt-, .pt2- oder .npz-Datei</translation>
    </message>
    <message>
        <source>a page of HTML</source>
        <translation>eine HTML-Seite</translation>
    </message>
    <message>
        <source>a NumPy array</source>
        <translation>ein Array von NumPy</translation>
    </message>
    <message>
        <source>a Parquet table</source>
        <translation>eine Parquet-Tabelle</translation>
    </message>
    <message>
        <source>an Arrow table</source>
        <translation>eine Arrow-Tabelle</translation>
    </message>
    <message>
        <source>an ONNX file</source>
        <translation>eine ONNX-Datei</translation>
    </message>
    <message>
        <source>a safetensors file</source>
        <translation>eine safetensors-Datei</translation>
    </message>
    <message>
        <source>a Python file</source>
        <translation>eine Python-Datei</translation>
    </message>
    <message>
        <source>a file of another kind</source>
        <translation>eine Datei anderer Art</translation>
    </message>
    <message>
        <source>the memory ran out</source>
        <translation>der Speicher ging aus</translation>
    </message>
    <message>
        <source>is damaged, or holds what its reader does not expect; if other programs open it, please report that</source>
        <translation>ist beschädigt oder enthält, was beim Lesen nicht erwartet wird; wenn andere Programme die Datei öffnen, bitte melden</translation>
    </message>
    <message>
        <source>{} cannot be read: {w}</source>
        <translation>{} kann nicht gelesen werden: {w}</translation>
    </message>
    <message>
        <source>it is a folder, and a file is expected</source>
        <translation>es ist ein Ordner, erwartet wird eine Datei</translation>
    </message>
    <message>
        <source>{} is {w}, and a file is expected</source>
        <translation>{} ist {w}, erwartet wird eine Datei</translation>
    </message>
    <message>
        <source>it is nested too deep</source>
        <translation>sie ist zu tief verschachtelt</translation>
    </message>
    <message>
        <source>batch {n} was left out: {w} holds NaN or infinite values</source>
        <translation>Batch {n} wurde ausgelassen: {w} enthält NaN oder unendliche Werte</translation>
    </message>
    <message>
        <source>the model&apos;s output</source>
        <translation>die Ausgabe des Modells</translation>
    </message>
    <message>
        <source>the {} of {}</source>
        <translation>{} von {}</translation>
    </message>
    <message>
        <source>no batch of {} ran without NaN or infinity: {w}</source>
        <translation>kein Batch von {} lief ohne NaN oder unendliche Werte: {w}</translation>
    </message>
    <message>
        <source>the data never reached the layer {}: nothing was observed of it</source>
        <translation>die Daten erreichten die Schicht {} nie: von ihr wurde nichts beobachtet</translation>
    </message>
    <message>
        <source>the data never reached the layer {}: what quantizing it costs is not known, and counts nowhere here</source>
        <translation>die Daten erreichten die Schicht {} nie: was ihre Quantisierung kostet, ist nicht bekannt und zählt hier nirgends</translation>
    </message>
    <message>
        <source>the model is more confident on the calibration data than on {} (mean Gini impurity of its probabilities {} and {}), so predicted losses are too low, about {} of what is measured here; calibrate on data like these</source>
        <translation>das Modell ist bei den Kalibrierdaten sicherer als bei {} (mittlere Gini-Unreinheit seiner Wahrscheinlichkeiten {} und {}), also sind vorhergesagte Verluste zu klein, etwa {} des hier gemessenen; mit Daten wie diesen kalibrieren</translation>
    </message>
    <message>
        <source>the predicted losses are about {} times what {} cost when measured: the answers may be all but certain, or the model may choose by rank. {w}; use the metric measured_kl</source>
        <translation>die vorhergesagten Verluste sind etwa das {}-Fache dessen, was {} gemessen kosteten: die Antworten sind vielleicht fast sicher, oder das Modell wählt nach Rang. {w}; das Maß „Gemessene KL“ verwenden</translation>
    </message>
    <message>
        <source>Whole plans are predicted by those that were measured</source>
        <translation>Ganze Pläne werden nach den gemessenen vorhergesagt</translation>
    </message>
    <message>
        <source>Intervals are left out</source>
        <translation>Intervalle fehlen</translation>
    </message>
    <message>
        <source>a loss of {} nats is beyond what the second order predicts well: evaluate or audit the plan (range widened to -{}, +{})</source>
        <translation>einen Verlust von {} nats sagt die zweite Ordnung nicht mehr gut vorher: den Plan auswerten oder prüfen (Bereich erweitert auf -{}, +{})</translation>
    </message>
    <message>
        <source>{} of {} experts of {} saw fewer than {} tokens, one for each of their inputs (expert {} saw {}); calibrate on more samples</source>
        <translation>{} von {} Experten von {} sahen weniger als {} Token, eines je Eingang (Experte {} sah {}); mit mehr Beispielen kalibrieren</translation>
    </message>
    <message>
        <source>{} of {} experts of {} saw fewer than {} tokens, one for each of their inputs (expert {} saw {}); calibrate on more samples, or let all experts see all tokens (--all-experts)</source>
        <translation>{} von {} Experten von {} sahen weniger als {} Token, eines je Eingang (Experte {} sah {}); mit mehr Beispielen kalibrieren oder alle Experten alle Token sehen lassen (--all-experts)</translation>
    </message>
    <message>
        <source>Arrow keys move the cell, Enter assigns its scheme, Control and wheel zoom</source>
        <translation>Pfeiltasten bewegen die Zelle, Enter weist ihr Schema zu, Strg und Mausrad zoomen</translation>
    </message>
    <message>
        <source>{w} from {n} to {n}</source>
        <translation>{w} von {n} bis {n}</translation>
    </message>
    <message>
        <source>from {n} to {n} {w}</source>
        <translation>von {n} bis {n} {w}</translation>
    </message>
    <message>
        <source>95 % interval of the predicted loss</source>
        <translation>95-%-Intervall des vorhergesagten Verlusts</translation>
    </message>
    <message>
        <source>{w} against {} everywhere but in embeddings</source>
        <translation>{w} gegenüber {} überall, nur nicht in Einbettungen</translation>
    </message>
    <message>
        <source>{w} against {} everywhere</source>
        <translation>{w} gegenüber {} überall</translation>
    </message>
    <message>
        <source>&amp;Wait, Then Close</source>
        <translation>&amp;Warten, dann schließen</translation>
    </message>
    <message>
        <source>&amp;Cancel and Keep What Is Done</source>
        <translation>&amp;Abbrechen und Fertiges behalten</translation>
    </message>
    <message>
        <source>Go On in the &amp;Background</source>
        <translation>Im &amp;Hintergrund weitermachen</translation>
    </message>
    <message>
        <source>Do &amp;Not Close</source>
        <translation>&amp;Nicht schließen</translation>
    </message>
    <message>
        <source>{} (not there)</source>
        <translation>{} (nicht vorhanden)</translation>
    </message>
    <message>
        <source>Make this saved plan the current one</source>
        <translation>Diesen gespeicherten Plan zum aktuellen machen</translation>
    </message>
    <message>
        <source>Select the layer</source>
        <translation>Die Schicht auswählen</translation>
    </message>
    <message>
        <source>{} for 1 selected layer</source>
        <translation>{} für 1 gewählte Schicht</translation>
    </message>
    <message>
        <source>{} for {n} selected layers</source>
        <translation>{} für {n} gewählte Schichten</translation>
    </message>
    <message>
        <source>◆ evaluated plans</source>
        <translation>◆ ausgewertete Pläne</translation>
    </message>
    <message>
        <source>Evaluate a plan first (F8)</source>
        <translation>Zuerst einen Plan auswerten (F8)</translation>
    </message>
    <message>
        <source>Choose two different evaluations.</source>
        <translation>Zwei verschiedene Auswertungen wählen.</translation>
    </message>
    <message>
        <source>The two evaluations have no metric in common.</source>
        <translation>Die beiden Auswertungen haben kein gemeinsames Maß.</translation>
    </message>
    <message>
        <source>weights alone, not the rounded inputs of {w}</source>
        <translation>nur Gewichte, nicht die gerundeten Eingaben von {w}</translation>
    </message>
    <message>
        <source>weights alone, not the rounded keys and values of {w}</source>
        <translation>nur Gewichte, nicht die gerundeten Keys und Values von {w}</translation>
    </message>
    <message>
        <source>The plan has changed since</source>
        <translation>Der Plan hat sich seitdem geändert</translation>
    </message>
    <message>
        <source>no such layer</source>
        <translation>keine solche Schicht</translation>
    </message>
    <message>
        <source>of the vocabulary was seen</source>
        <translation>des Vokabulars wurde gesehen</translation>
    </message>
    <message>
        <source>of the evaluation&apos;s tokens have an id that was seen</source>
        <translation>der Token der Auswertung haben eine gesehene Nummer</translation>
    </message>
    <message>
        <source>of its labels</source>
        <translation>ihrer Labels</translation>
    </message>
    <message>
        <source>of its samples have a length within those seen</source>
        <translation>ihrer Beispiele haben eine der gesehenen Längen</translation>
    </message>
    <message>
        <source>{w} for calibration, {n} for evaluation</source>
        <translation>{w} zur Kalibrierung, {n} zur Auswertung</translation>
    </message>
    <message>
        <source>Shares of the predicted loss under {}</source>
        <translation>Anteile am vorhergesagten Verlust mit {}</translation>
    </message>
    <message>
        <source>Shares of the squared error (calibrate to weigh it) under {}</source>
        <translation>Anteile am quadratischen Fehler (Kalibrieren gewichtet ihn) mit {}</translation>
    </message>
    <message>
        <source>Channels {} to {}: {} to {}, {} of the channels&apos; squared magnitudes</source>
        <translation>Kanäle {} bis {}: {} bis {}, {} der quadrierten Beträge der Kanäle</translation>
    </message>
    <message>
        <source>Channels {} to {}: {} to {}, {} of the channels&apos; squared magnitudes, {} of the error</source>
        <translation>Kanäle {} bis {}: {} bis {}, {} der quadrierten Beträge der Kanäle, {} des Fehlers</translation>
    </message>
    <message>
        <source>a plan stores weights and inputs</source>
        <translation>ein Plan speichert Gewichte und Eingaben</translation>
    </message>
    <message>
        <source>a scheme scales the weights by group</source>
        <translation>ein Schema skaliert die Gewichte je Gruppe</translation>
    </message>
    <message>
        <source>the plan scales this input for every token</source>
        <translation>der Plan skaliert diese Eingabe für jedes Token</translation>
    </message>
    <message>
        <source>the smallest possible with the scored schemes is {}</source>
        <translation>das kleinste mit den bewerteten Schemata ist {}</translation>
    </message>
    <message>
        <source>What was timed of this plan at batch {}: {} against {} in floating point, {}× ({w} one after another).</source>
        <translation>Was von diesem Plan gemessen ist, bei Batch {}: {} gegenüber {} in Gleitkomma, {}× ({w} nacheinander).</translation>
    </message>
    <message>
        <source>What was timed of this plan at batch {}: {} against {} in floating point, {}× ({w} one after another, {w} not timed).</source>
        <translation>Was von diesem Plan gemessen ist, bei Batch {}: {} gegenüber {} in Gleitkomma, {}× ({w} nacheinander, {w} nicht gemessen).</translation>
    </message>
    <message>
        <source>This plan at batch {}: {} against {} in floating point, {}× ({w} one after another).</source>
        <translation>Dieser Plan bei Batch {}: {} gegenüber {} in Gleitkomma, {}× ({w} nacheinander).</translation>
    </message>
    <message>
        <source>Estimate for {} at batch {}, by its data sheet and not measured: {} against {} as stored, {}× ({w} that it cannot run counted as stored).</source>
        <translation>Schätzung für {} bei Batch {}, nach dem Datenblatt und nicht gemessen: {} gegen {} wie gespeichert, {}× ({w}, die es nicht ausführen kann, wie gespeichert gezählt).</translation>
    </message>
    <message>
        <source>1 timing of schemes that the plan does not have left out.</source>
        <translation>1 Messung von Schemata, die der Plan nicht hat, ist ausgelassen.</translation>
    </message>
    <message>
        <source>Kernels whose weights stay in a cache may lie above the memory&apos;s line</source>
        <translation>Kernel, deren Gewichte in einem Cache bleiben, können über der Linie des Speichers liegen</translation>
    </message>
    <message>
        <source>estimate: {} GB/s and {} TFLOP/s by the data sheet</source>
        <translation>Schätzung: {} GB/s und {} TFLOP/s nach dem Datenblatt</translation>
    </message>
    <message>
        <source>estimate for {}, from its data sheet (roofline), not measured</source>
        <translation>Schätzung für {} nach dem Datenblatt (Roofline), nicht gemessen</translation>
    </message>
    <message>
        <source>measured ceilings</source>
        <translation>gemessene Obergrenzen</translation>
    </message>
    <message>
        <source>estimate from the data sheet</source>
        <translation>Schätzung nach dem Datenblatt</translation>
    </message>
    <message>
        <source>95 % of tensors</source>
        <translation>95 % der Tensoren</translation>
    </message>
    <message>
        <source>median</source>
        <translation>Median</translation>
    </message>
    <message>
        <source>worst</source>
        <translation>schlechtester</translation>
    </message>
    <message>
        <source>time of all layers in {}</source>
        <translation>Zeit aller Schichten in {}</translation>
    </message>
    <message>
        <source>size in {}</source>
        <translation>Größe in {}</translation>
    </message>
    <message>
        <source>The workbench was not closed properly. There is a copy of the session of {}, written on {}.</source>
        <translation>Die Workbench wurde nicht ordentlich beendet. Es gibt eine Kopie der Sitzung von {} vom {}.</translation>
    </message>
    <message>
        <source>The workbench was not closed properly. There is a copy of the session of {}, written on {}. Another window or program has changed that file since: saving asks which to keep.</source>
        <translation>Die Workbench wurde nicht ordentlich beendet. Es gibt eine Kopie der Sitzung von {} vom {}. Ein anderes Fenster oder Programm hat die Datei seitdem geändert: beim Speichern wird gefragt, welche bleibt.</translation>
    </message>
    <message>
        <source>The workbench was not closed properly. There is a copy of the session that was never saved, written on {}.</source>
        <translation>Die Workbench wurde nicht ordentlich beendet. Es gibt eine Kopie der nie gespeicherten Sitzung vom {}.</translation>
    </message>
    <message>
        <source>Nothing matches</source>
        <translation>Nichts passt</translation>
    </message>
    <message>
        <source>the table</source>
        <translation>die Tabelle</translation>
    </message>
    <message>
        <source>{} holds data, not a model; open the model that reads them, then drop them again</source>
        <translation>{} enthält Daten, kein Modell; das Modell öffnen, das sie liest, und sie dann noch einmal hierher ziehen</translation>
    </message>
    <message>
        <source>{} (not the present plan)</source>
        <translation>{} (nicht der aktuelle Plan)</translation>
    </message>
    <message>
        <source>Matches no layer</source>
        <translation>Passt auf keine Schicht</translation>
    </message>
    <message>
        <source>Matches {w}: {}</source>
        <translation>Passt auf {w}: {}</translation>
    </message>
    <message>
        <source>{} of the size</source>
        <translation>{} so groß</translation>
    </message>
    <message>
        <source>{n} layers not timed</source>
        <translation>{n} Schichten nicht gemessen</translation>
    </message>
    <message>
        <source>{w} left out</source>
        <translation>{w} ausgelassen</translation>
    </message>
    <message>
        <source>all {n}</source>
        <translation>alle {n}</translation>
    </message>
    <message>
        <source>The losses of single layers add up to {n}; together it is {n} more, because errors interact.</source>
        <translation>Die Verluste einzelner Schichten ergeben zusammen {n}; gemeinsam sind es {n} mehr, weil Fehler zusammenwirken.</translation>
    </message>
    <message>
        <source>The losses of single layers add up to {n}; together it is {n} less, because errors interact.</source>
        <translation>Die Verluste einzelner Schichten ergeben zusammen {n}; gemeinsam sind es {n} weniger, weil Fehler zusammenwirken.</translation>
    </message>
    <message>
        <source>{}: {} (95 % between {n} and {n}); this difference is resolved with {w}</source>
        <translation>{}: {} (95 % zwischen {n} und {n}); dieser Unterschied ist mit {w} aufgelöst</translation>
    </message>
    <message>
        <source>{}: {} (95 % between {n} and {n}); this difference is not resolved with {w}; about {n} would be needed</source>
        <translation>{}: {} (95 % zwischen {n} und {n}); dieser Unterschied ist mit {w} nicht aufgelöst; etwa {n} wären nötig</translation>
    </message>
    <message>
        <source>{}: {} (95 % between {n} and {n}); this difference is not resolved with {w}</source>
        <translation>{}: {} (95 % zwischen {n} und {n}); dieser Unterschied ist mit {w} nicht aufgelöst</translation>
    </message>
    <message>
        <source>the results so far are kept</source>
        <translation>die bisherigen Ergebnisse bleiben</translation>
    </message>
    <message>
        <source>&amp;Lock Against Searches</source>
        <translation>Gegen Suchen &amp;sperren</translation>
    </message>
    <message>
        <source>this cell: {}</source>
        <translation>diese Zelle: {}</translation>
    </message>
    <message>
        <source>{} refuses it: {w}</source>
        <translation>{} lehnt es ab: {w}</translation>
    </message>
    <message>
        <source>{w}, {n} of them measured, the others predicted and corrected</source>
        <translation>{w}, davon {n} gemessen, die anderen vorhergesagt und korrigiert</translation>
    </message>
    <message>
        <source>click assigns, once more takes out</source>
        <translation>Klick weist zu, noch einmal nimmt heraus</translation>
    </message>
    <message>
        <source>not computed</source>
        <translation>nicht berechnet</translation>
    </message>
    <message>
        <source>{} (measured)</source>
        <translation>{} (gemessen)</translation>
    </message>
    <message>
        <source>{} (measured), {w}</source>
        <translation>{} (gemessen), {w}</translation>
    </message>
    <message>
        <source>{} (predicted, corrected)</source>
        <translation>{} (vorhergesagt, korrigiert)</translation>
    </message>
    <message>
        <source>{} (predicted, corrected), {w}</source>
        <translation>{} (vorhergesagt, korrigiert), {w}</translation>
    </message>
    <message>
        <source>{} (measured: no gradient tells what it decides)</source>
        <translation>{} (gemessen: kein Gradient sagt, was es entscheidet)</translation>
    </message>
    <message>
        <source>{} (measured: no gradient tells what it decides), {w}</source>
        <translation>{} (gemessen: kein Gradient sagt, was es entscheidet), {w}</translation>
    </message>
    <message>
        <source>{} ({n} layers)</source>
        <translation>{} ({n} Schichten)</translation>
    </message>
    <message>
        <source>Matches {w}: {} and {n} more</source>
        <translation>Passt auf {w}: {} und {n} weitere</translation>
    </message>
    <message>
        <source>{} cannot be read: it is {w}, and a file is expected</source>
        <translation>{} kann nicht gelesen werden: das ist {w}, erwartet wird eine Datei</translation>
    </message>
    <message>
        <source>a folder</source>
        <translation>ein Ordner</translation>
    </message>
    <message>
        <source>compressed-tensors has no scheme for {} in what was written</source>
        <translation>compressed-tensors hat kein Schema für {} in dem, was geschrieben wurde</translation>
    </message>
    <message>
        <source>please report</source>
        <translation>bitte melden</translation>
    </message>
    <message>
        <source>the plan stores keys and values in {}</source>
        <translation>der Plan speichert Keys und Values in {}</translation>
    </message>
    <message>
        <source>compressed-tensors has one scheme for all</source>
        <translation>compressed-tensors hat ein Schema für alle</translation>
    </message>
    <message>
        <source>a KV cache in {} cannot be expressed in compressed-tensors</source>
        <translation>ein KV-Cache in {} lässt sich in compressed-tensors nicht ausdrücken</translation>
    </message>
    <message>
        <source>choose fp8-e4m3-token</source>
        <translation>fp8-e4m3-token wählen</translation>
    </message>
    <message>
        <source>this needs the package compressed-tensors</source>
        <translation>dafür wird das Paket compressed-tensors gebraucht</translation>
    </message>
    <message>
        <source>the package compressed-tensors does not take the model&apos;s own rotations</source>
        <translation>das Paket compressed-tensors nimmt die eigenen Rotationen des Modells nicht an</translation>
    </message>
    <message>
        <source>{} comes from {}, so transformers has no config.json to load it with</source>
        <translation>{} kommt aus {}, daher hat transformers keine config.json, um es zu laden</translation>
    </message>
    <message>
        <source>export to state-dict or safetensors instead</source>
        <translation>stattdessen nach state-dict oder safetensors exportieren</translation>
    </message>
    <message>
        <source>no config.json lies in {}</source>
        <translation>in {} liegt keine config.json</translation>
    </message>
    <message>
        <source>put the weights, as model.safetensors, into a folder with the config.json and the tokenizer of their model and open that, or export to state-dict or safetensors</source>
        <translation>die Gewichte als model.safetensors in einen Ordner mit der config.json und dem Tokenizer ihres Modells legen und diesen öffnen, oder nach state-dict oder safetensors exportieren</translation>
    </message>
    <message>
        <source>{} exists and holds more than an earlier export</source>
        <translation>{} existiert und enthält mehr als einen früheren Export</translation>
    </message>
    <message>
        <source>choose a new folder, nothing was changed</source>
        <translation>einen neuen Ordner wählen, nichts wurde geändert</translation>
    </message>
    <message>
        <source>what was written to {} reads back otherwise</source>
        <translation>was nach {} geschrieben wurde, liest sich anders zurück</translation>
    </message>
    <message>
        <source>check the disk and export again</source>
        <translation>die Platte prüfen und noch einmal exportieren</translation>
    </message>
    <message>
        <source>the configuration and the tokenizer cannot be copied</source>
        <translation>die Konfiguration und der Tokenizer können nicht kopiert werden</translation>
    </message>
    <message>
        <source>{} is a link to {}, outside the model&apos;s folder, and would be copied into the export</source>
        <translation>{} ist ein Link auf {}, außerhalb des Ordners des Modells, und würde in den Export kopiert</translation>
    </message>
    <message>
        <source>put the file itself there</source>
        <translation>die Datei selbst dorthin legen</translation>
    </message>
    <message>
        <source>checkpoint_format is {}, not {}</source>
        <translation>checkpoint_format ist {}, nicht {}</translation>
    </message>
    <message>
        <source>the plan gives no layer a scheme that GPTQ stores</source>
        <translation>der Plan gibt keiner Schicht ein Schema, das GPTQ speichert</translation>
    </message>
    <message>
        <source>there is nothing to write</source>
        <translation>es gibt nichts zu schreiben</translation>
    </message>
    <message>
        <source>the plan gives no layer a scheme that MLX stores</source>
        <translation>der Plan gibt keiner Schicht ein Schema, das MLX speichert</translation>
    </message>
    <message>
        <source>the architecture {} cannot be written for mlx-lm yet</source>
        <translation>die Architektur {} kann für mlx-lm noch nicht geschrieben werden</translation>
    </message>
    <message>
        <source>supported are {}</source>
        <translation>unterstützt werden {}</translation>
    </message>
    <message>
        <source>mlx-lm&apos;s {} computes no network with {}</source>
        <translation>{} von mlx-lm rechnet kein Netz mit {}</translation>
    </message>
    <message>
        <source>it cannot be written as an MLX checkpoint</source>
        <translation>es lässt sich nicht als MLX-Checkpoint schreiben</translation>
    </message>
    <message>
        <source>{} no longer has its .safetensors files, whose names and layout are copied</source>
        <translation>{} hat seine .safetensors-Dateien nicht mehr, deren Namen und Aufbau übernommen werden</translation>
    </message>
    <message>
        <source>the plan gives no layer a scheme that torchao stores</source>
        <translation>der Plan gibt keiner Schicht ein Schema, das torchao speichert</translation>
    </message>
    <message>
        <source>this needs the package torchao</source>
        <translation>dafür wird das Paket torchao gebraucht</translation>
    </message>
    <message>
        <source>pip install &apos;quantization-workbench[torchao]&apos;</source>
        <translation>pip install &apos;quantization-workbench[torchao]&apos;</translation>
    </message>
    <message>
        <source>{} in {} cannot be read back from {}</source>
        <translation>{} in {} kann nicht aus {} zurückgelesen werden</translation>
    </message>
    <message>
        <source>{} is true or false, not {}</source>
        <translation>{} ist true oder false, nicht {}</translation>
    </message>
    <message>
        <source>{} has no option {}</source>
        <translation>{} hat keine Option {}</translation>
    </message>
    <message>
        <source>the closest are {}</source>
        <translation>am nächsten kommen {}</translation>
    </message>
    <message>
        <source>{} is a number such as {}, not {}</source>
        <translation>{} ist eine Zahl wie {}, nicht {}</translation>
    </message>
    <message>
        <source>transformers does not load what was written</source>
        <translation>transformers lädt nicht, was geschrieben wurde</translation>
    </message>
    <message>
        <source>an importance matrix holds the inputs of a calibration, and there is none</source>
        <translation>eine Importance-Matrix enthält die Eingaben einer Kalibrierung, und es gibt keine</translation>
    </message>
    <message>
        <source>calibrate first, then export from that session</source>
        <translation>erst kalibrieren, dann aus dieser Sitzung exportieren</translation>
    </message>
    <message>
        <source>the file holds {} bytes of tensors, the plan counts {}</source>
        <translation>die Datei enthält {} Bytes an Tensoren, der Plan zählt {}</translation>
    </message>
    <message>
        <source>{} is not a packed file of the workbench</source>
        <translation>{} ist keine gepackte Datei der Workbench</translation>
    </message>
    <message>
        <source>{} has version {}, this reads {}</source>
        <translation>{} hat Version {}, gelesen wird {}</translation>
    </message>
    <message>
        <source>update the workbench</source>
        <translation>die Workbench aktualisieren</translation>
    </message>
    <message>
        <source>{} is damaged: it does not describe its tensors</source>
        <translation>{} ist beschädigt: die Datei beschreibt ihre Tensoren nicht</translation>
    </message>
    <message>
        <source>{} did not read back as the plan that was written</source>
        <translation>{} liest sich nicht als der Plan zurück, der geschrieben wurde</translation>
    </message>
    <message>
        <source>try another place</source>
        <translation>einen anderen Ort versuchen</translation>
    </message>
    <message>
        <source>the script did not read back as the plan that was written</source>
        <translation>das Skript liest sich nicht als der Plan zurück, der geschrieben wurde</translation>
    </message>
    <message>
        <source>there is no tool {}</source>
        <translation>es gibt kein Werkzeug {}</translation>
    </message>
    <message>
        <source>there are {}</source>
        <translation>es gibt {}</translation>
    </message>
    <message>
        <source>the plan rewrites the model first ({}), which a recipe cannot express</source>
        <translation>der Plan formt das Modell zuerst um ({}), was ein Rezept nicht ausdrücken kann</translation>
    </message>
    <message>
        <source>the recipe for {} does not read back as it was written</source>
        <translation>das Rezept für {} liest sich nicht zurück, wie es geschrieben wurde</translation>
    </message>
    <message>
        <source>the plan&apos;s rotation gives {} a weight of its own, which a network that ties it cannot load from a state dict</source>
        <translation>die Rotation des Plans gibt {} ein eigenes Gewicht, das ein Netz, das es koppelt, nicht aus einem State-Dict laden kann</translation>
    </message>
    <message>
        <source>export to huggingface or safetensors</source>
        <translation>nach huggingface oder safetensors exportieren</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s quantizer takes tensor types only, and this plan also has {}: remove them, or export a GGUF file</source>
        <translation>der Quantisierer von llama.cpp nimmt nur Typen von Tensoren, und dieser Plan hat auch {}: sie entfernen oder eine GGUF-Datei exportieren</translation>
    </message>
    <message>
        <source>{} gives {} the type {} and not {}</source>
        <translation>{} gibt {} den Typ {} und nicht {}</translation>
    </message>
    <message>
        <source>nothing was written</source>
        <translation>nichts wurde geschrieben</translation>
    </message>
    <message>
        <source>The {w} is kept as {}</source>
        <translation>{w} bleibt erhalten als {}</translation>
    </message>
    <message>
        <source>{} comes from {}; a GGUF file needs the configuration and the tokenizer of a Hugging Face folder: open that</source>
        <translation>{} kommt aus {}; eine GGUF-Datei braucht die Konfiguration und den Tokenizer eines Hugging-Face-Ordners: diesen öffnen</translation>
    </message>
    <message>
        <source>{} tensors were written, the package gguf reads {}</source>
        <translation>{} Tensoren wurden geschrieben, das Paket gguf liest {}</translation>
    </message>
    <message>
        <source>{} was written as {} and reads back as {}</source>
        <translation>{} wurde als {} geschrieben und liest sich als {} zurück</translation>
    </message>
    <message>
        <source>{} was written in {} bytes and reads back in {}</source>
        <translation>{} wurde in {} Bytes geschrieben und liest sich in {} zurück</translation>
    </message>
    <message>
        <source>{}[{}, {}] reads back as {}, {} was evaluated</source>
        <translation>{}[{}, {}] liest sich als {} zurück, ausgewertet wurde {}</translation>
    </message>
    <message>
        <source>{} has {} bytes, its type and shape need {}</source>
        <translation>{} hat {} Bytes, Typ und Form brauchen {}</translation>
    </message>
    <message>
        <source>the package gguf does not read what was written</source>
        <translation>das Paket gguf liest nicht, was geschrieben wurde</translation>
    </message>
    <message>
        <source>the metadata {} do not read back as they were written</source>
        <translation>die Metadaten {} lesen sich nicht zurück, wie sie geschrieben wurden</translation>
    </message>
    <message>
        <source>{} does not read back as it was written</source>
        <translation>{} liest sich nicht zurück, wie es geschrieben wurde</translation>
    </message>
    <message>
        <source>{} matches none of the model&apos;s {} layers: it has {}, the model {}</source>
        <translation>{} passt auf keine der {} Schichten des Modells: enthalten ist {}, im Modell {}</translation>
    </message>
    <message>
        <source>give this model&apos;s matrix</source>
        <translation>die Matrix dieses Modells angeben</translation>
    </message>
    <message>
        <source>the importance matrix has {} values for {}, the layer has {} inputs</source>
        <translation>die Importance-Matrix hat {} Werte für {}, die Schicht hat {} Eingaben</translation>
    </message>
    <message>
        <source>it is another model&apos;s</source>
        <translation>sie gehört zu einem anderen Modell</translation>
    </message>
    <message>
        <source>torch cannot capture {} as an ONNX graph</source>
        <translation>torch kann {} nicht als ONNX-Graph erfassen</translation>
    </message>
    <message>
        <source>{} runs on {} in {}; a graph is captured on the CPU in float32: export on the CPU (--device cpu) in float32 (--dtype float32)</source>
        <translation>{} läuft auf {} in {}; ein Graph wird auf der CPU in float32 erfasst: auf der CPU (--device cpu) in float32 (--dtype float32) exportieren</translation>
    </message>
    <message>
        <source>ONNX files need the package {}</source>
        <translation>ONNX-Dateien brauchen das Paket {}</translation>
    </message>
    <message>
        <source>install it: pip install &apos;quantization-workbench[onnx]&apos;</source>
        <translation>installieren: pip install &apos;quantization-workbench[onnx]&apos;</translation>
    </message>
    <message>
        <source>what {} takes is not known, so it cannot be captured</source>
        <translation>was {} annimmt, ist nicht bekannt, daher kann es nicht erfasst werden</translation>
    </message>
    <message>
        <source>ONNX has no representation for {}</source>
        <translation>ONNX hat keine Darstellung für {}</translation>
    </message>
    <message>
        <source>{} is not a language model of transformers</source>
        <translation>{} ist kein Sprachmodell von transformers</translation>
    </message>
    <message>
        <source>only those have a KV cache</source>
        <translation>nur diese haben einen KV-Cache</translation>
    </message>
    <message>
        <source>export it to onnx</source>
        <translation>nach onnx exportieren</translation>
    </message>
    <message>
        <source>ONNX Runtime GenAI does not know the architecture {}</source>
        <translation>ONNX Runtime GenAI kennt die Architektur {} nicht</translation>
    </message>
    <message>
        <source>it knows {}: export it to onnx</source>
        <translation>bekannt sind {}: nach onnx exportieren</translation>
    </message>
    <message>
        <source>{} keeps more than keys and values between tokens</source>
        <translation>{} behält zwischen Token mehr als Keys und Values</translation>
    </message>
    <message>
        <source>accuracy is 0 to 4, not {}</source>
        <translation>accuracy ist 0 bis 4, nicht {}</translation>
    </message>
    <message>
        <source>{} reads back as {}, not {}</source>
        <translation>{} liest sich als {} zurück, nicht {}</translation>
    </message>
    <message>
        <source>the package onnx does not read what was written</source>
        <translation>das Paket onnx liest nicht, was geschrieben wurde</translation>
    </message>
    <message>
        <source>the operator {} reads back otherwise than it was written</source>
        <translation>der Operator {} liest sich anders zurück, als er geschrieben wurde</translation>
    </message>
    <message>
        <source>the inputs of {} have the static scheme {}: calibrate</source>
        <translation>die Eingaben von {} haben das statische Schema {}: kalibrieren</translation>
    </message>
    <message>
        <source>ONNX has no representation for inputs in {}</source>
        <translation>ONNX hat keine Darstellung für Eingaben in {}</translation>
    </message>
    <message>
        <source>give them 8 bits</source>
        <translation>ihnen 8 Bits geben</translation>
    </message>
    <message>
        <source>ONNX has no representation for dynamic inputs in {}</source>
        <translation>ONNX hat keine Darstellung für dynamische Eingaben in {}</translation>
    </message>
    <message>
        <source>int8-token has one</source>
        <translation>int8-token hat eine</translation>
    </message>
    <message>
        <source>the inputs of {} have the scheme {}, but the graph uses its weight in {} alone</source>
        <translation>die Eingaben von {} haben das Schema {}, aber der Graph verwendet ihr Gewicht nur in {}</translation>
    </message>
    <message>
        <source>leave its inputs in floating point</source>
        <translation>die Eingaben in Gleitkomma lassen</translation>
    </message>
    <message>
        <source>its graph cannot be converted from opset {} to {}</source>
        <translation>der Graph lässt sich nicht von Opset {} nach {} umwandeln</translation>
    </message>
    <message>
        <source>the file has no tensor {}</source>
        <translation>die Datei hat keinen Tensor {}</translation>
    </message>
    <message>
        <source>{} lacks {}, which the network has</source>
        <translation>in {} fehlt {}, das im Netz vorkommt</translation>
    </message>
    <message>
        <source>does it belong to this class of network?</source>
        <translation>gehört es zu dieser Klasse von Netz?</translation>
    </message>
    <message>
        <source>{} holds {}, which the network lacks</source>
        <translation>{} enthält {}, das im Netz fehlt</translation>
    </message>
    <message>
        <source>{} holds {} as {}, the network has {}</source>
        <translation>{} enthält {} als {}, im Netz ist es {}</translation>
    </message>
    <message>
        <source>{} did not end within {} seconds</source>
        <translation>{} endete nicht innerhalb von {} Sekunden</translation>
    </message>
    <message>
        <source>give fewer samples</source>
        <translation>weniger Beispiele angeben</translation>
    </message>
    <message>
        <source>the tensors beside the ONNX file cannot be copied</source>
        <translation>die Tensoren neben der ONNX-Datei können nicht kopiert werden</translation>
    </message>
    <message>
        <source>no runtime is called {}</source>
        <translation>keine Laufzeit heißt {}</translation>
    </message>
    <message>
        <source>{} computes something other than what was evaluated: its outputs are {} {} from the evaluation, of which its rounding of inputs explains {} ({})</source>
        <translation>{} rechnet etwas anderes als das, was ausgewertet wurde: die Ausgaben weichen {} {} von der Auswertung ab, wovon das Runden der Eingaben {} erklärt ({})</translation>
    </message>
    <message>
        <source>{} computes something other than what was evaluated: its outputs are {} {} from the evaluation, of which its rounding of inputs explains {}</source>
        <translation>{} rechnet etwas anderes als das, was ausgewertet wurde: die Ausgaben weichen {} {} von der Auswertung ab, wovon das Runden der Eingaben {} erklärt</translation>
    </message>
    <message>
        <source>folders are run on tokens alone, and {} needs {} too</source>
        <translation>Ordner werden nur auf Token ausgeführt, und {} braucht auch {}</translation>
    </message>
    <message>
        <source>mlx-lm computes no sliding windows for this network: give samples of at most {} tokens, these have {}</source>
        <translation>mlx-lm rechnet für dieses Netz keine gleitenden Fenster: Beispiele von höchstens {} Token angeben, diese haben {}</translation>
    </message>
    <message>
        <source>two tensors would be called {}</source>
        <translation>zwei Tensoren würden {} heißen</translation>
    </message>
    <message>
        <source>rename one of them in the model</source>
        <translation>einen davon im Modell umbenennen</translation>
    </message>
    <message>
        <source>the header would take {} bytes, readers accept {}</source>
        <translation>der Kopf der Datei würde {} Bytes brauchen, Leser nehmen {} an</translation>
    </message>
    <message>
        <source>make rules shorter</source>
        <translation>Regeln kürzer machen</translation>
    </message>
    <message>
        <source>{} is not a whole safetensors file</source>
        <translation>{} ist keine vollständige safetensors-Datei</translation>
    </message>
    <message>
        <source>{} has {} bytes, its shape and dtype need {}</source>
        <translation>{} hat {} Bytes, Form und dtype brauchen {}</translation>
    </message>
    <message>
        <source>there is no target {}</source>
        <translation>es gibt kein Ziel {}</translation>
    </message>
    <message>
        <source>choose one of {}, or runtime@hardware such as vllm@nvidia-9.0</source>
        <translation>eines von {} wählen, oder Laufzeit@Hardware wie vllm@nvidia-9.0</translation>
    </message>
    <message>
        <source>{} cannot hold {} tensor as the plan says, nothing was written. {w}</source>
        <translation>{} kann {} Tensor nicht so fassen, wie der Plan sagt, nichts wurde geschrieben. {w}</translation>
    </message>
    <message>
        <source>{} cannot hold {} tensors as the plan says, nothing was written. {w}</source>
        <translation>{} kann {} Tensoren nicht so fassen, wie der Plan sagt, nichts wurde geschrieben. {w}</translation>
    </message>
    <message>
        <source>this export reads the model&apos;s weights: open the model and export again</source>
        <translation>dieser Export liest die Gewichte des Modells: das Modell öffnen und noch einmal exportieren</translation>
    </message>
    <message>
        <source>the plan rotates the inputs of {} while the model runs (online-rotation), which this form cannot say</source>
        <translation>der Plan dreht die Eingaben von {}, während das Modell läuft (online-rotation), was diese Form nicht festhalten kann</translation>
    </message>
    <message>
        <source>export to compressed-tensors or script, or take online-rotation out of the plan</source>
        <translation>nach compressed-tensors oder script exportieren, oder online-rotation aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>{} rotates activations while it runs ({} in transform_config of its config.json), which this form cannot say</source>
        <translation>{} dreht Aktivierungen, während es läuft ({} in transform_config seiner config.json), was diese Form nicht festhalten kann</translation>
    </message>
    <message>
        <source>export to compressed-tensors or script</source>
        <translation>nach compressed-tensors oder script exportieren</translation>
    </message>
    <message>
        <source>{} reads back as {} bytes, {} were written</source>
        <translation>{} liest sich als {} Bytes zurück, geschrieben wurden {}</translation>
    </message>
    <message>
        <source>{}[{}] reads back as {}, {} was written</source>
        <translation>{}[{}] liest sich als {} zurück, geschrieben wurde {}</translation>
    </message>
    <message>
        <source>{} reads back as {}, it is {}</source>
        <translation>{} liest sich als {} zurück, es ist {}</translation>
    </message>
    <message>
        <source>{}[{}] reads back as {}, {} was evaluated</source>
        <translation>{}[{}] liest sich als {} zurück, ausgewertet wurde {}</translation>
    </message>
    <message>
        <source>the plan gives {} the scheme {}, but it was not quantized</source>
        <translation>der Plan gibt {} das Schema {}, aber es wurde nicht quantisiert</translation>
    </message>
    <message>
        <source>the plan quantizes {} of {}, which {} cannot express: a program that loads the file would compute something other than what was evaluated</source>
        <translation>der Plan quantisiert {} von {}, was {} nicht ausdrücken kann: ein Programm, das die Datei lädt, würde etwas anderes rechnen als das, was ausgewertet wurde</translation>
    </message>
    <message>
        <source>export to script or safetensors, or remove the {} schemes from the plan</source>
        <translation>nach script oder safetensors exportieren, oder die Schemata für {} aus dem Plan entfernen</translation>
    </message>
    <message>
        <source>the cluster at {} has no workers</source>
        <translation>der Cluster unter {} hat keine Worker</translation>
    </message>
    <message>
        <source>start some: dask worker {}</source>
        <translation>welche starten: dask worker {}</translation>
    </message>
    <message>
        <source>give a number of processes from 1 to {}, such as local:4</source>
        <translation>eine Anzahl von Prozessen von 1 bis {} angeben, wie local:4</translation>
    </message>
    <message>
        <source>{} is not the address of a cluster</source>
        <translation>{} ist keine Adresse eines Clusters</translation>
    </message>
    <message>
        <source>give that of a Dask scheduler, such as tcp://host:8786, or local:4 for four processes of this machine</source>
        <translation>die eines Dask-Schedulers angeben, wie tcp://host:8786, oder local:4 für vier Prozesse dieses Rechners</translation>
    </message>
    <message>
        <source>a cluster needs Dask</source>
        <translation>ein Cluster braucht Dask</translation>
    </message>
    <message>
        <source>install it: pip install &apos;quantization-workbench[cluster]&apos;</source>
        <translation>installieren: pip install &apos;quantization-workbench[cluster]&apos;</translation>
    </message>
    <message>
        <source>no Dask scheduler answers at {} ({})</source>
        <translation>unter {} antwortet kein Dask-Scheduler ({})</translation>
    </message>
    <message>
        <source>start one: dask scheduler</source>
        <translation>einen starten: dask scheduler</translation>
    </message>
    <message>
        <source>job {} cannot be tried again: only failed and cancelled jobs can</source>
        <translation>der Auftrag {} kann nicht wiederholt werden: nur gescheiterte und abgebrochene können es</translation>
    </message>
    <message>
        <source>this window cannot run jobs</source>
        <translation>dieses Fenster kann keine Aufträge ausführen</translation>
    </message>
    <message>
        <source>it was opened only for a picture</source>
        <translation>es wurde nur für ein Bild geöffnet</translation>
    </message>
    <message>
        <source>{} names no hardware to estimate for</source>
        <translation>{} nennt keine Hardware, für die geschätzt werden könnte</translation>
    </message>
    <message>
        <source>choose one of {}</source>
        <translation>eines von {} wählen</translation>
    </message>
    <message>
        <source>{w}; install it: pip install --upgrade &apos;{}[{}]&apos;</source>
        <translation>{w}; installieren: pip install --upgrade &apos;{}[{}]&apos;</translation>
    </message>
    <message>
        <source>the task draws its answers at random (do_sample), so they differ from run to run</source>
        <translation>die Aufgabe zieht ihre Antworten zufällig (do_sample), sie sind also bei jedem Lauf anders</translation>
    </message>
    <message>
        <source>set do_sample: false in its generation_kwargs</source>
        <translation>do_sample: false in ihren generation_kwargs setzen</translation>
    </message>
    <message>
        <source>{} is not a causal language model, which tasks need</source>
        <translation>{} ist kein kausales Sprachmodell, das Aufgaben brauchen</translation>
    </message>
    <message>
        <source>{} gives no figure</source>
        <translation>{} ergibt keine Kennzahl</translation>
    </message>
    <message>
        <source>its tasks need a metric that is a mean over documents, as acc</source>
        <translation>die Aufgaben brauchen ein Maß, das ein Mittel über Dokumente ist, wie acc</translation>
    </message>
    <message>
        <source>the task {} gives no result</source>
        <translation>die Aufgabe {} liefert kein Ergebnis</translation>
    </message>
    <message>
        <source>there is no task file at {}</source>
        <translation>unter {} gibt es keine Datei einer Aufgabe</translation>
    </message>
    <message>
        <source>give a .yaml file of lm-evaluation-harness or a folder of them</source>
        <translation>eine .yaml-Datei von lm-evaluation-harness oder einen Ordner davon angeben</translation>
    </message>
    <message>
        <source>allow it (--trust) only if you know it</source>
        <translation>das nur erlauben (--trust), wenn die Herkunft bekannt ist</translation>
    </message>
    <message>
        <source>tasks need lm-evaluation-harness: pip install &apos;quantization-workbench[tasks]&apos; ({})</source>
        <translation>Aufgaben brauchen lm-evaluation-harness: pip install &apos;quantization-workbench[tasks]&apos; ({})</translation>
    </message>
    <message>
        <source>the model answers {} positions, which do not form a grid like the labels&apos; {}</source>
        <translation>das Modell beantwortet {} Positionen, die kein Gitter wie das der Labels bilden: {}</translation>
    </message>
    <message>
        <source>the word error rate needs the package jiwer</source>
        <translation>die Wortfehlerrate braucht das Paket jiwer</translation>
    </message>
    <message>
        <source>pip install &apos;quantization-workbench[data]&apos;</source>
        <translation>pip install &apos;quantization-workbench[data]&apos;</translation>
    </message>
    <message>
        <source>the samples do not pair</source>
        <translation>die Beispiele bilden keine Paare</translation>
    </message>
    <message>
        <source>got {w} and {w}</source>
        <translation>erhalten wurden {w} und {w}</translation>
    </message>
    <message>
        <source>{} and {} are different metrics</source>
        <translation>{} und {} sind verschiedene Maße</translation>
    </message>
    <message>
        <source>the second moments of {} take {}, and {} of memory and disk are free</source>
        <translation>die zweiten Momente von {} brauchen {}, und {} sind im Speicher und auf der Platte frei</translation>
    </message>
    <message>
        <source>choose rtn-clip for it</source>
        <translation>dafür rtn-clip wählen</translation>
    </message>
    <message>
        <source>there is no Python file {}</source>
        <translation>es gibt keine Python-Datei {}</translation>
    </message>
    <message>
        <source>give FILE.py or FILE.py:FUNCTION</source>
        <translation>DATEI.py oder DATEI.py:FUNKTION angeben</translation>
    </message>
    <message>
        <source>taking a metric from {} runs it as a Python program</source>
        <translation>ein Maß aus {} zu nehmen, führt es als Python-Programm aus</translation>
    </message>
    <message>
        <source>{} has no function {}</source>
        <translation>{} hat keine Funktion {}</translation>
    </message>
    <message>
        <source>define {}(outputs, batch)</source>
        <translation>{}(outputs, batch) definieren</translation>
    </message>
    <message>
        <source>a metric called {} is computed already</source>
        <translation>ein Maß namens {} wird schon berechnet</translation>
    </message>
    <message>
        <source>give the function another name</source>
        <translation>der Funktion einen anderen Namen geben</translation>
    </message>
    <message>
        <source>the metric {} returned the shape {} for {} samples</source>
        <translation>das Maß {} gab die Form {} für {} Beispiele zurück</translation>
    </message>
    <message>
        <source>it has to return one number for each sample</source>
        <translation>sie muss eine Zahl für jedes Beispiel zurückgeben</translation>
    </message>
    <message>
        <source>the metric {} failed</source>
        <translation>das Maß {} schlug fehl</translation>
    </message>
    <message>
        <source>{} is in an order of bytes of one kind of GPU</source>
        <translation>{} ist in der Bytefolge einer bestimmten Art von GPU gespeichert</translation>
    </message>
    <message>
        <source>save it again by bitsandbytes 0.43</source>
        <translation>mit bitsandbytes 0.43 noch einmal speichern</translation>
    </message>
    <message>
        <source>{} has no quant_state of nf4 or fp4</source>
        <translation>{} hat keinen quant_state von nf4 oder fp4</translation>
    </message>
    <message>
        <source>fetch the checkpoint again</source>
        <translation>den Checkpoint noch einmal holen</translation>
    </message>
    <message>
        <source>{} has a table of its own or blocks of {} in rows of {}</source>
        <translation>{} hat eine eigene Tabelle oder Blöcke von {} in Zeilen von {}</translation>
    </message>
    <message>
        <source>bitsandbytes&apos; tables of {} with blocks that divide the rows are read</source>
        <translation>gelesen werden die Tabellen von bitsandbytes für {} mit Blöcken, die die Zeilen teilen</translation>
    </message>
    <message>
        <source>{} has quantized tensors, and no config group of config.json is for it</source>
        <translation>{} hat quantisierte Tensoren, und keine config group der config.json gilt dafür</translation>
    </message>
    <message>
        <source>{} has scales and no matrix that they are for</source>
        <translation>{} hat Skalen und keine Matrix, zu der sie gehören</translation>
    </message>
    <message>
        <source>{} is stored as {} of {} bits in strategy {}, which is not read</source>
        <translation>{} ist als {} mit {} Bits in der Strategie {} gespeichert, die nicht gelesen wird</translation>
    </message>
    <message>
        <source>{} has one scale for each {}, which is not read yet</source>
        <translation>{} hat eine Skala für jedes {}, was noch nicht gelesen wird</translation>
    </message>
    <message>
        <source>{} in config.json is not a regular expression that is read</source>
        <translation>{} in config.json ist kein regulärer Ausdruck, der gelesen wird</translation>
    </message>
    <message>
        <source>{} has scales and no matrix of float8_e4m3fn</source>
        <translation>{} hat Skalen und keine Matrix in float8_e4m3fn</translation>
    </message>
    <message>
        <source>{} is not an MXFP4 weight: its blocks are {}</source>
        <translation>{} ist kein MXFP4-Gewicht: die Blöcke sind {}</translation>
    </message>
    <message>
        <source>AWQ checkpoints of version {} with {} bits are not read yet</source>
        <translation>Checkpoints von AWQ der Version {} mit {} Bits werden noch nicht gelesen</translation>
    </message>
    <message>
        <source>4 bits in the version gemm are</source>
        <translation>4 Bits in der Version gemm werden es</translation>
    </message>
    <message>
        <source>the tensors of {} do not fit together: {} zero points, {} scales</source>
        <translation>die Tensoren von {} passen nicht zusammen: {} Nullpunkte, {} Skalen</translation>
    </message>
    <message>
        <source>{} has GPTQ codes of {} bits in the format {}</source>
        <translation>{} hat GPTQ-Codes von {} Bits im Format {}</translation>
    </message>
    <message>
        <source>{} is not an AWQ weight: {} words for {} outputs</source>
        <translation>{} ist kein AWQ-Gewicht: {} Wörter für {} Ausgaben</translation>
    </message>
    <message>
        <source>fetch the file again</source>
        <translation>die Datei noch einmal holen</translation>
    </message>
    <message>
        <source>{} has a qweight and no {}</source>
        <translation>{} hat ein qweight und kein {}</translation>
    </message>
    <message>
        <source>{} is stored in MLX&apos;s mode {}, and affine, {} are read</source>
        <translation>{} ist im Modus {} von MLX gespeichert, und affine, {} werden gelesen</translation>
    </message>
    <message>
        <source>{} has no biases beside scales of 16 or 32 bits</source>
        <translation>{} hat keine biases neben Skalen von 16 oder 32 Bits</translation>
    </message>
    <message>
        <source>{} has scales and no words of codes (uint32)</source>
        <translation>{} hat Skalen und keine Wörter von Codes (uint32)</translation>
    </message>
    <message>
        <source>{} of transform_config has a random matrix of {} x {}, which the files lack</source>
        <translation>{} von transform_config hat eine zufällige Matrix von {} x {}, die in den Dateien fehlt</translation>
    </message>
    <message>
        <source>its activations are transformed {} while the model runs ({} in transform_config of config.json), which is not read: {} of inputs and outputs of linear layers are</source>
        <translation>seine Aktivierungen werden {} umgeformt, während das Modell läuft ({} in transform_config der config.json), was nicht gelesen wird: {} von Ein- und Ausgaben linearer Schichten werden es</translation>
    </message>
    <message>
        <source>open the folder that it was made from</source>
        <translation>den Ordner öffnen, aus dem es gemacht wurde</translation>
    </message>
    <message>
        <source>it transforms queries and keys differently while the model runs ({} in transform_config of config.json), which is not read</source>
        <translation>es formt Queries und Keys verschieden um, während das Modell läuft ({} in transform_config der config.json), was nicht gelesen wird</translation>
    </message>
    <message>
        <source>transform_config rotates the {} of {}, of class {}: of linear layers alone is that read</source>
        <translation>transform_config dreht {} von {}, der Klasse {}: nur für lineare Schichten wird das gelesen</translation>
    </message>
    <message>
        <source>{} of transform_config has a Hadamard matrix of {}, no power of two</source>
        <translation>{} von transform_config hat eine Hadamard-Matrix von {}, keiner Zweierpotenz</translation>
    </message>
    <message>
        <source>{} of transform_config is for {}, and the network has no such modules</source>
        <translation>{} von transform_config gilt für {}, und das Netz hat keine solchen Module</translation>
    </message>
    <message>
        <source>fetch the folder again</source>
        <translation>den Ordner noch einmal holen</translation>
    </message>
    <message>
        <source>{} and the tensors beside it take {} bytes, {} of {} takes {}</source>
        <translation>{} und die Tensoren daneben brauchen {} Bytes, {} von {} braucht {}</translation>
    </message>
    <message>
        <source>{} cannot be read as {}</source>
        <translation>{} kann nicht als {} gelesen werden</translation>
    </message>
    <message>
        <source>{} is damaged: it does not describe its tensors ({})</source>
        <translation>{} ist beschädigt: die Datei beschreibt ihre Tensoren nicht ({})</translation>
    </message>
    <message>
        <source>the file is damaged: it does not describe its layers ({})</source>
        <translation>die Datei ist beschädigt: sie beschreibt ihre Schichten nicht ({})</translation>
    </message>
    <message>
        <source>the file&apos;s metadata do not describe {}.weight</source>
        <translation>die Metadaten der Datei beschreiben {}.weight nicht</translation>
    </message>
    <message>
        <source>{} is stored as torchao&apos;s {}, and of its tensors {} are read</source>
        <translation>{} ist als {} von torchao gespeichert, und von dessen Tensoren werden {} gelesen</translation>
    </message>
    <message>
        <source>{} has zero points other than 8-bit integers, which cannot be read yet</source>
        <translation>{} hat andere Nullpunkte als ganze Zahlen von 8 Bits, die noch nicht gelesen werden</translation>
    </message>
    <message>
        <source>{} is not a matrix, or its inputs are scaled first</source>
        <translation>{} ist keine Matrix, oder die Eingaben werden erst skaliert</translation>
    </message>
    <message>
        <source>neither can be read yet</source>
        <translation>beides kann noch nicht gelesen werden</translation>
    </message>
    <message>
        <source>{} holds {}; the model also needs {}</source>
        <translation>{} enthält {}; das Modell braucht auch {}</translation>
    </message>
    <message>
        <source>every array needs one row for each sample, their rows are {}</source>
        <translation>jedes Array braucht eine Zeile für jedes Beispiel, ihre Zeilen sind {}</translation>
    </message>
    <message>
        <source>decoder_input_ids are {} and labels {}</source>
        <translation>decoder_input_ids sind {} und labels {}</translation>
    </message>
    <message>
        <source>give a label for each of the decoder&apos;s tokens</source>
        <translation>ein Label für jedes Token des Decoders angeben</translation>
    </message>
    <message>
        <source>{} holds fractions</source>
        <translation>{} enthält Brüche</translation>
    </message>
    <message>
        <source>give whole numbers</source>
        <translation>ganze Zahlen angeben</translation>
    </message>
    <message>
        <source>give 1 for what is real and 0 for padding</source>
        <translation>1 für Echtes und 0 für Auffüllung angeben</translation>
    </message>
    <message>
        <source>the {} is 0 all through in {} of {} samples, the first is {}</source>
        <translation>{} ist in {} von {} Proben durchweg 0, die erste ist {}</translation>
    </message>
    <message>
        <source>{} holds {}; a tensor or named tensors were expected</source>
        <translation>{} enthält {}; erwartet wurde ein Tensor oder benannte Tensoren</translation>
    </message>
    <message>
        <source>{} holds {}; expected {}, and labels</source>
        <translation>{} enthält {}; erwartet wurden {} und labels</translation>
    </message>
    <message>
        <source>{} is empty: {} has the shape {}</source>
        <translation>{} ist leer: {} hat die Form {}</translation>
    </message>
    <message>
        <source>give at least one sample</source>
        <translation>mindestens ein Beispiel angeben</translation>
    </message>
    <message>
        <source>{} holds token ids of shape {} and an attention mask of shape {}</source>
        <translation>{} enthält Token-Nummern der Form {} und eine Attention-Maske der Form {}</translation>
    </message>
    <message>
        <source>give both as windows x tokens</source>
        <translation>beide als Fenster x Token angeben</translation>
    </message>
    <message>
        <source>{} holds {}, the model takes token ids</source>
        <translation>{} enthält {}, das Modell nimmt Token-Nummern</translation>
    </message>
    <message>
        <source>give integers, windows x tokens, or a text</source>
        <translation>ganze Zahlen angeben, Fenster x Token, oder einen Text</translation>
    </message>
    <message>
        <source>{} holds windows of {} tokens, the model takes windows of {}</source>
        <translation>{} enthält Fenster von {} Token, das Modell nimmt Fenster von {}</translation>
    </message>
    <message>
        <source>{} holds windows of {} tokens, {} were asked for</source>
        <translation>{} enthält Fenster von {} Token, verlangt wurden {}</translation>
    </message>
    <message>
        <source>ask for at most {}</source>
        <translation>höchstens {} verlangen</translation>
    </message>
    <message>
        <source>{} holds windows of {} tokens, the model takes {}</source>
        <translation>{} enthält Fenster von {} Token, das Modell nimmt {}</translation>
    </message>
    <message>
        <source>ask for that (sequence length)</source>
        <translation>diese verlangen (Sequenzlänge)</translation>
    </message>
    <message>
        <source>{} holds {} samples but {} labels</source>
        <translation>{} enthält {} Beispiele, aber {} Labels</translation>
    </message>
    <message>
        <source>each sample needs one</source>
        <translation>jedes Beispiel braucht eines</translation>
    </message>
    <message>
        <source>{} is not a NumPy file: it begins with neither \x93NUMPY nor PK</source>
        <translation>{} ist keine NumPy-Datei: sie beginnt weder mit \x93NUMPY noch mit PK</translation>
    </message>
    <message>
        <source>{} cannot be read as arrays</source>
        <translation>{} kann nicht als Arrays gelesen werden</translation>
    </message>
    <message>
        <source>{} holds pickled objects, which are never opened</source>
        <translation>{} enthält Objekte als Pickle, die nie geöffnet werden</translation>
    </message>
    <message>
        <source>save plain tensors (torch.save)</source>
        <translation>reine Tensoren speichern (torch.save)</translation>
    </message>
    <message>
        <source>{} cannot be run for {}</source>
        <translation>{} kann nicht für {} ausgeführt werden</translation>
    </message>
    <message>
        <source>the data set {} holds no samples</source>
        <translation>der Datensatz {} enthält keine Beispiele</translation>
    </message>
    <message>
        <source>{} needs at least one</source>
        <translation>{} braucht mindestens eines</translation>
    </message>
    <message>
        <source>{} is random: run twice on the same samples, its outputs differ by {} (their spread is {}), so no figure of it would mean anything</source>
        <translation>{} ist zufällig: zweimal auf denselben Beispielen ausgeführt, unterscheiden sich die Ausgaben um {} (ihre Streuung ist {}), sodass keine Kennzahl davon etwas bedeuten würde</translation>
    </message>
    <message>
        <source>switch dropout and other randomness off where the network is evaluated</source>
        <translation>Dropout und anderen Zufall abschalten, wo das Netz ausgewertet wird</translation>
    </message>
    <message>
        <source>the model answers the same sample with {} numbers and with {}: how many there are depends on chance, on the weights or on the samples beside it (points that it finds, sounds of its own length), so that a quantized model cannot be compared with it</source>
        <translation>das Modell beantwortet dasselbe Beispiel mit {} Zahlen und mit {}: wie viele es sind, hängt vom Zufall, von den Gewichten oder von den Beispielen daneben ab (gefundene Punkte, Töne eigener Länge), sodass ein quantisiertes Modell nicht damit verglichen werden kann</translation>
    </message>
    <message>
        <source>the label {} is not a class</source>
        <translation>das Label {} ist keine Klasse</translation>
    </message>
    <message>
        <source>give the number of a class, 0 to {}</source>
        <translation>die Nummer einer Klasse angeben, 0 bis {}</translation>
    </message>
    <message>
        <source>the labels are {} to {}, the model has the classes 0 to {}</source>
        <translation>die Labels sind {} bis {}, das Modell hat die Klassen 0 bis {}</translation>
    </message>
    <message>
        <source>give labels of this model&apos;s classes, and -100 where there is none</source>
        <translation>Labels der Klassen dieses Modells angeben, und -100, wo es keines gibt</translation>
    </message>
    <message>
        <source>the label in row {} is {}</source>
        <translation>das Label in Zeile {} ist {}</translation>
    </message>
    <message>
        <source>one number or text for each sample was expected: give labels of single tokens or of several classes as arrays (.npz), or leave them out (--column)</source>
        <translation>erwartet wurde eine Zahl oder ein Text für jedes Beispiel: Labels einzelner Token oder mehrerer Klassen als Arrays (.npz) angeben oder weglassen (--column)</translation>
    </message>
    <message>
        <source>{} is not a class of the model, which has {} to {}</source>
        <translation>{} ist keine Klasse des Modells, das {} bis {} hat</translation>
    </message>
    <message>
        <source>name the classes by their numbers or by the model&apos;s names</source>
        <translation>die Klassen mit ihren Nummern oder den Namen des Modells benennen</translation>
    </message>
    <message>
        <source>{} has {} classes ({}), the model {} ({})</source>
        <translation>{} hat {} Klassen ({}), das Modell {} ({})</translation>
    </message>
    <message>
        <source>name them as the model does, or by its numbers</source>
        <translation>sie so nennen wie das Modell, oder mit ihren Nummern</translation>
    </message>
    <message>
        <source>the model has no class {}</source>
        <translation>das Modell hat keine Klasse {}</translation>
    </message>
    <message>
        <source>its classes are {}</source>
        <translation>die Klassen sind {}</translation>
    </message>
    <message>
        <source>{} holds no sample</source>
        <translation>{} enthält kein Beispiel</translation>
    </message>
    <message>
        <source>give a file with more data, or a smaller sequence length</source>
        <translation>eine Datei mit mehr Daten angeben, oder eine kürzere Sequenzlänge</translation>
    </message>
    <message>
        <source>there is no split {}</source>
        <translation>es gibt keinen Teil {}</translation>
    </message>
    <message>
        <source>expected {w}</source>
        <translation>erwartet wurde {w}</translation>
    </message>
    <message>
        <source>there is no bundled data {}</source>
        <translation>es gibt keine mitgelieferten Daten {}</translation>
    </message>
    <message>
        <source>bundled are {}</source>
        <translation>mitgeliefert sind {}</translation>
    </message>
    <message>
        <source>{} holds a calibration and an evaluation part</source>
        <translation>{} enthält einen Teil zum Kalibrieren und einen zum Auswerten</translation>
    </message>
    <message>
        <source>ask for one of them</source>
        <translation>einen davon verlangen</translation>
    </message>
    <message>
        <source>{} is {w} data and there is no {} beside it</source>
        <translation>{} enthält Daten für {w}, und daneben liegt kein {}</translation>
    </message>
    <message>
        <source>name the {w} data</source>
        <translation>die Daten für {w} angeben</translation>
    </message>
    <message>
        <source>{} is packed ({}); unpack it, and give the file or folder that it holds</source>
        <translation>{} ist gepackt ({}); entpacken, und die Datei oder den Ordner darin angeben</translation>
    </message>
    <message>
        <source>{} holds {} tables ({})</source>
        <translation>{} enthält {} Tabellen ({})</translation>
    </message>
    <message>
        <source>give one of them, as {}</source>
        <translation>eine davon angeben, als {}</translation>
    </message>
    <message>
        <source>{} rows have no token ids, the first is row {}</source>
        <translation>{} Zeilen haben keine Token-Nummern, die erste ist Zeile {}</translation>
    </message>
    <message>
        <source>remove them</source>
        <translation>sie entfernen</translation>
    </message>
    <message>
        <source>row {} is no list of words</source>
        <translation>Zeile {} ist keine Liste von Wörtern</translation>
    </message>
    <message>
        <source>fix or remove it</source>
        <translation>sie berichtigen oder entfernen</translation>
    </message>
    <message>
        <source>{} holds words, and the tokenizer in {} has no tokenizer.json</source>
        <translation>{} enthält Wörter, und der Tokenizer in {} hat keine tokenizer.json</translation>
    </message>
    <message>
        <source>give token ids</source>
        <translation>Token-Nummern angeben</translation>
    </message>
    <message>
        <source>row {} has {}; give one for each</source>
        <translation>Zeile {} hat {}; eines für jedes angeben</translation>
    </message>
    <message>
        <source>row {} of {} holds {}, a list of whole numbers was expected</source>
        <translation>Zeile {} von {} enthält {}, erwartet wurde eine Liste ganzer Zahlen</translation>
    </message>
    <message>
        <source>row {} of {} holds a number beyond 64 bits</source>
        <translation>Zeile {} von {} enthält eine Zahl von mehr als 64 Bits</translation>
    </message>
    <message>
        <source>the model also needs the answers: labels, a list of token ids in each row</source>
        <translation>das Modell braucht auch die Antworten: labels, eine Liste von Token-Nummern in jeder Zeile</translation>
    </message>
    <message>
        <source>the data hold {}</source>
        <translation>die Daten enthalten {}</translation>
    </message>
    <message>
        <source>the model takes {}: give the arrays these names</source>
        <translation>das Modell nimmt {}: den Arrays diese Namen geben</translation>
    </message>
    <message>
        <source>the tokenizer in {} cannot be used</source>
        <translation>der Tokenizer in {} kann nicht verwendet werden</translation>
    </message>
    <message>
        <source>{} holds masks, which are not a class of pictures</source>
        <translation>{} enthält Masken, die keine Klasse von Bildern sind</translation>
    </message>
    <message>
        <source>give the pictures and masks as arrays (.npz of pixel_values, and labels: samples x height x width)</source>
        <translation>die Bilder und Masken als Arrays angeben (.npz mit pixel_values und labels: Beispiele x Höhe x Breite)</translation>
    </message>
    <message>
        <source>the images have different sizes ({}: {}, {}: another) and the model states none</source>
        <translation>die Bilder haben verschiedene Größen ({}: {}, {}: eine andere), und das Modell nennt keine</translation>
    </message>
    <message>
        <source>give images of one size</source>
        <translation>Bilder einer Größe angeben</translation>
    </message>
    <message>
        <source>the image processor in {} gives {} for {} images</source>
        <translation>die Bildverarbeitung in {} liefert {} für {} Bilder</translation>
    </message>
    <message>
        <source>the images have {} channels, the model takes {}</source>
        <translation>die Bilder haben {} Kanäle, das Modell nimmt {}</translation>
    </message>
    <message>
        <source>convert them</source>
        <translation>sie umwandeln</translation>
    </message>
    <message>
        <source>the images are {} x {} pixels, the model takes {} x {}</source>
        <translation>die Bilder haben {} x {} Pixel, das Modell nimmt {} x {}</translation>
    </message>
    <message>
        <source>{} cannot be read as an image</source>
        <translation>{} kann nicht als Bild gelesen werden</translation>
    </message>
    <message>
        <source>{} has {} values for {} channels</source>
        <translation>{} hat {} Werte für {} Kanäle</translation>
    </message>
    <message>
        <source>a sample is pictures or sounds and a text, its answer, or a conversation (--column)</source>
        <translation>ein Beispiel besteht aus Bildern oder Tönen und einem Text, dessen Antwort, oder aus einem Gespräch (--column)</translation>
    </message>
    <message>
        <source>no column of texts stands beside the {}</source>
        <translation>neben {} steht keine Spalte mit Texten</translation>
    </message>
    <message>
        <source>row {} has no text beside its picture or sound</source>
        <translation>Zeile {} hat keinen Text neben ihrem Bild oder Ton</translation>
    </message>
    <message>
        <source>row {} has more {w} than places for them</source>
        <translation>Zeile {} hat mehr {w} als Plätze dafür</translation>
    </message>
    <message>
        <source>row {} has more places for {w} than {w}</source>
        <translation>Zeile {} hat mehr Plätze für {w} als {w}</translation>
    </message>
    <message>
        <source>a text with its picture or sound has {} tokens, the model takes {}</source>
        <translation>ein Text mit seinem Bild oder Ton hat {} Token, das Modell nimmt {}</translation>
    </message>
    <message>
        <source>give shorter texts, or smaller pictures or sounds</source>
        <translation>kürzere Texte angeben, oder kleinere Bilder oder Töne</translation>
    </message>
    <message>
        <source>the processor makes {}, and {}</source>
        <translation>der Prozessor macht {}, und {}</translation>
    </message>
    <message>
        <source>give pictures or sounds of one size</source>
        <translation>Bilder oder Töne einer Größe angeben</translation>
    </message>
    <message>
        <source>fetch the folder again, or give texts alone</source>
        <translation>den Ordner noch einmal holen, oder nur Texte angeben</translation>
    </message>
    <message>
        <source>the processor in {} cannot read {}</source>
        <translation>der Prozessor in {} kann {} nicht lesen</translation>
    </message>
    <message>
        <source>fix the row or the processor&apos;s files</source>
        <translation>die Zeile oder die Dateien des Prozessors berichtigen</translation>
    </message>
    <message>
        <source>the image processor in {} gives {} for one image</source>
        <translation>die Bildverarbeitung in {} liefert {} für ein Bild</translation>
    </message>
    <message>
        <source>samples x channels x height x width are read: give arrays (.npz) of what the model takes</source>
        <translation>gelesen werden Beispiele x Kanäle x Höhe x Breite: Arrays (.npz) dessen angeben, was das Modell nimmt</translation>
    </message>
    <message>
        <source>the image processor in {} cannot be used</source>
        <translation>die Bildverarbeitung in {} kann nicht verwendet werden</translation>
    </message>
    <message>
        <source>correct {}, or give arrays (.npz) of pixel_values</source>
        <translation>{} berichtigen, oder Arrays (.npz) mit pixel_values angeben</translation>
    </message>
    <message>
        <source>text is {}; give one of {}</source>
        <translation>text ist {}; eines von {} angeben</translation>
    </message>
    <message>
        <source>there is no option {}</source>
        <translation>es gibt keine Option {}</translation>
    </message>
    <message>
        <source>give {}</source>
        <translation>{} angeben</translation>
    </message>
    <message>
        <source>the option {} is given twice; give it once</source>
        <translation>die Option {} ist zweimal angegeben; sie einmal angeben</translation>
    </message>
    <message>
        <source>the column {} is empty; name another (--column)</source>
        <translation>die Spalte {} ist leer; eine andere nennen (--column)</translation>
    </message>
    <message>
        <source>{} is {}; give a number of tokens</source>
        <translation>{} ist {}; eine Anzahl von Token angeben</translation>
    </message>
    <message>
        <source>the column {} holds {}, the model takes text (--column)</source>
        <translation>die Spalte {} enthält {}, das Modell nimmt Text (--column)</translation>
    </message>
    <message>
        <source>an encoder-decoder takes two texts a row, its own and the answer: give a table of pairs (.jsonl, .csv) and the names of both columns (--column A,B)</source>
        <translation>ein Encoder-Decoder nimmt zwei Texte je Zeile, seinen und die Antwort: eine Tabelle von Paaren (.jsonl, .csv) und die Namen beider Spalten angeben (--column A,B)</translation>
    </message>
    <message>
        <source>the model takes pictures or sounds, and the column {} holds {}, which is not a file beside the table</source>
        <translation>das Modell nimmt Bilder oder Töne, und die Spalte {} enthält {}, was keine Datei neben der Tabelle ist</translation>
    </message>
    <message>
        <source>an image or a sound is {}</source>
        <translation>ein Bild oder ein Ton ist {}</translation>
    </message>
    <message>
        <source>give its bytes or its path, or of a sound the array and the sampling_rate (an object of both)</source>
        <translation>die Bytes oder den Pfad angeben, oder von einem Ton das Array und die sampling_rate (ein Objekt mit beidem)</translation>
    </message>
    <message>
        <source>samples from {}, {} of them, were asked for</source>
        <translation>verlangt wurden Beispiele ab {}, {} davon</translation>
    </message>
    <message>
        <source>give a start from 0 and at least one</source>
        <translation>einen Anfang ab 0 und mindestens eines angeben</translation>
    </message>
    <message>
        <source>the model also needs transcripts</source>
        <translation>das Modell braucht auch Mitschriften</translation>
    </message>
    <message>
        <source>give a table with audio and transcription columns</source>
        <translation>eine Tabelle mit den Spalten audio und transcription angeben</translation>
    </message>
    <message>
        <source>the processor in {} has the sampling_rate {}</source>
        <translation>der Prozessor in {} hat die sampling_rate {}</translation>
    </message>
    <message>
        <source>expected {} to {} Hz: correct it</source>
        <translation>erwartet wurden {} bis {} Hz: berichtigen</translation>
    </message>
    <message>
        <source>{} is no array of finite numbers, points or channels x points</source>
        <translation>{} ist kein Array endlicher Zahlen, Punkte oder Kanäle x Punkte</translation>
    </message>
    <message>
        <source>correct it</source>
        <translation>berichtigen</translation>
    </message>
    <message>
        <source>{} is empty; remove it</source>
        <translation>{} ist leer; entfernen</translation>
    </message>
    <message>
        <source>{} has the sampling rate {} Hz</source>
        <translation>{} hat die Abtastrate {} Hz</translation>
    </message>
    <message>
        <source>expected {} to {}</source>
        <translation>erwartet wurden {} bis {}</translation>
    </message>
    <message>
        <source>it may be damaged</source>
        <translation>vielleicht beschädigt</translation>
    </message>
    <message>
        <source>the sounds have different lengths</source>
        <translation>die Töne haben verschiedene Längen</translation>
    </message>
    <message>
        <source>no sound has {} points</source>
        <translation>kein Ton hat {} Punkte</translation>
    </message>
    <message>
        <source>{} has no preprocessor_config.json, so sounds cannot be made into its inputs</source>
        <translation>{} hat keine preprocessor_config.json, daher können aus Tönen nicht seine Eingaben gemacht werden</translation>
    </message>
    <message>
        <source>put the file into the folder, or give arrays (.npz)</source>
        <translation>die Datei in den Ordner legen, oder Arrays angeben (.npz)</translation>
    </message>
    <message>
        <source>reading sounds needs the package soundfile</source>
        <translation>Töne zu lesen, braucht das Paket soundfile</translation>
    </message>
    <message>
        <source>{} cannot be read as a sound</source>
        <translation>{} kann nicht als Ton gelesen werden</translation>
    </message>
    <message>
        <source>the processor in {} cannot be used</source>
        <translation>der Prozessor in {} kann nicht verwendet werden</translation>
    </message>
    <message>
        <source>{} is empty; give at least one row</source>
        <translation>{} ist leer; mindestens eine Zeile angeben</translation>
    </message>
    <message>
        <source>{} has {} rows of {} columns in {}</source>
        <translation>{} hat {} Zeilen mit {} Spalten in {}</translation>
    </message>
    <message>
        <source>a file of its size may have {} cells: choose fewer columns (--column), or cut it</source>
        <translation>eine Datei dieser Größe darf {} Zellen haben: weniger Spalten wählen (--column), oder kürzen</translation>
    </message>
    <message>
        <source>{} becomes more than the {} that a file may hold here (ulimit -f)</source>
        <translation>aus {} wird mehr, als eine Datei hier enthalten darf (ulimit -f): {}</translation>
    </message>
    <message>
        <source>allow more</source>
        <translation>erlauben Sie mehr</translation>
    </message>
    <message>
        <source>{} becomes {}, and {} is the most for a file of its size</source>
        <translation>aus {} werden {}, und {} ist das Höchste für eine Datei dieser Größe</translation>
    </message>
    <message>
        <source>it is damaged or malicious</source>
        <translation>sie ist beschädigt oder bösartig</translation>
    </message>
    <message>
        <source>reading {} needs the package pyarrow</source>
        <translation>{} zu lesen, braucht das Paket pyarrow</translation>
    </message>
    <message>
        <source>{} has other columns than {}, of which {} are read</source>
        <translation>{} hat andere Spalten als {}, von denen {} gelesen werden</translation>
    </message>
    <message>
        <source>{} is damaged: its columns do not have the {} rows that it names</source>
        <translation>{} ist beschädigt: die Spalten haben nicht die {} Zeilen, die genannt sind</translation>
    </message>
    <message>
        <source>{} holds {} numbers in {}</source>
        <translation>{} enthält {} Zahlen in {}</translation>
    </message>
    <message>
        <source>a file of its size may have {}: cut it into parts</source>
        <translation>eine Datei dieser Größe darf {} haben: in Teile zerlegen</translation>
    </message>
    <message>
        <source>{} becomes {} of text, and {} is the most for a file of its size</source>
        <translation>aus {} werden {} Text, und {} ist das Höchste für eine Datei dieser Größe</translation>
    </message>
    <message>
        <source>cut it into parts, or it is damaged or malicious</source>
        <translation>in Teile zerlegen, oder sie ist beschädigt oder bösartig</translation>
    </message>
    <message>
        <source>{} cannot be read as a table: {w}</source>
        <translation>{} kann nicht als Tabelle gelesen werden: {w}</translation>
    </message>
    <message>
        <source>a line is longer than {}, the most for a row</source>
        <translation>eine Zeile ist länger als {}, das Meiste für eine Zeile</translation>
    </message>
    <message>
        <source>line {n} is longer than {}, the most for a row</source>
        <translation>Zeile {n} ist länger als {}, das Meiste für eine Zeile</translation>
    </message>
    <message>
        <source>row {n} is longer than {}, the most for a row</source>
        <translation>Zeile {n} ist länger als {}, das Meiste für eine Zeile</translation>
    </message>
    <message>
        <source>cut it, or write a list of rows or JSON Lines</source>
        <translation>sie kürzen, oder eine Liste von Zeilen oder JSON Lines schreiben</translation>
    </message>
    <message>
        <source>row {n} is not JSON ({w})</source>
        <translation>Zeile {n} ist kein JSON ({w})</translation>
    </message>
    <message>
        <source>line {n} is not JSON ({w})</source>
        <translation>Zeile {n} ist kein JSON ({w})</translation>
    </message>
    <message>
        <source>a comma is missing or too much</source>
        <translation>ein Komma fehlt oder ist zu viel</translation>
    </message>
    <message>
        <source>it ends within the list</source>
        <translation>sie endet in der Liste</translation>
    </message>
    <message>
        <source>something follows its list</source>
        <translation>hinter ihrer Liste steht etwas</translation>
    </message>
    <message>
        <source>its rows are not tables of names and values</source>
        <translation>ihre Zeilen sind keine Tabellen aus Namen und Werten</translation>
    </message>
    <message>
        <source>a cell of {} has {}, and {} is the most</source>
        <translation>eine Zelle von {} hat {}, und {} ist das Meiste</translation>
    </message>
    <message>
        <source>cut it</source>
        <translation>sie kürzen</translation>
    </message>
    <message>
        <source>a row is longer than {}, or a quotation mark is missing</source>
        <translation>eine Zeile ist länger als {}, oder ein Anführungszeichen fehlt</translation>
    </message>
    <message>
        <source>it has {n} columns, and {n} are the most</source>
        <translation>sie hat {n} Spalten, und {n} sind die meisten</translation>
    </message>
    <message>
        <source>it is in too many pieces for a file of its size</source>
        <translation>es besteht aus zu vielen Teilen für eine Datei seiner Größe</translation>
    </message>
    <message>
        <source>{} cannot be read as an image: {w}</source>
        <translation>{} kann nicht als Bild gelesen werden: {w}</translation>
    </message>
    <message>
        <source>{} cannot be read as a sound: {w}</source>
        <translation>{} kann nicht als Ton gelesen werden: {w}</translation>
    </message>
    <message>
        <source>{} cannot be read as arrays: {w}</source>
        <translation>{} kann nicht als Arrays gelesen werden: {w}</translation>
    </message>
    <message>
        <source>the package onnx does not read what would be written</source>
        <translation>das Paket onnx liest nicht, was geschrieben würde</translation>
    </message>
    <message>
        <source>{} cannot be read as a table</source>
        <translation>{} kann nicht als Tabelle gelesen werden</translation>
    </message>
    <message>
        <source>{} holds more than {}, the most for a packed file of its size</source>
        <translation>{} enthält mehr als {}, das Höchste für eine gepackte Datei dieser Größe</translation>
    </message>
    <message>
        <source>unpack it, or it is damaged or malicious</source>
        <translation>entpacken, oder sie ist beschädigt oder bösartig</translation>
    </message>
    <message>
        <source>remove those of all but one</source>
        <translation>alle entfernen außer denen von einer</translation>
    </message>
    <message>
        <source>{} is incomplete: of its {} shards {} is missing</source>
        <translation>{} ist unvollständig: von {} Teilen fehlt {}</translation>
    </message>
    <message>
        <source>add it</source>
        <translation>ihn hinzufügen</translation>
    </message>
    <message>
        <source>a sample is one text or a pair of them, not {} (--column)</source>
        <translation>ein Beispiel ist ein Text oder ein Paar davon, nicht {} (--column)</translation>
    </message>
    <message>
        <source>{} has no column {}</source>
        <translation>{} hat keine Spalte {}</translation>
    </message>
    <message>
        <source>{} rows have no {}, the first is row {}</source>
        <translation>{} Zeilen haben kein {}, die erste ist Zeile {}</translation>
    </message>
    <message>
        <source>the {} of row {} is a number beyond 64 bits, or a list of such</source>
        <translation>{} von Zeile {} ist eine Zahl von mehr als 64 Bits, oder eine Liste von solchen</translation>
    </message>
    <message>
        <source>the {} of row {} is {}, that of row 1 is {}</source>
        <translation>{} von Zeile {} ist {}, in Zeile 1 ist es {}</translation>
    </message>
    <message>
        <source>give one kind</source>
        <translation>eine Art angeben</translation>
    </message>
    <message>
        <source>row {} of the column {} is not UTF-8</source>
        <translation>Zeile {} der Spalte {} ist nicht UTF-8</translation>
    </message>
    <message>
        <source>save the file as UTF-8</source>
        <translation>die Datei als UTF-8 speichern</translation>
    </message>
    <message>
        <source>row {} of the column {} holds half a character (a surrogate)</source>
        <translation>Zeile {} der Spalte {} enthält ein halbes Zeichen (ein Surrogat)</translation>
    </message>
    <message>
        <source>fix it</source>
        <translation>berichtigen</translation>
    </message>
    <message>
        <source>{} names files of its own ({}), which are not read</source>
        <translation>{} nennt eigene Dateien ({}), die nicht gelesen werden</translation>
    </message>
    <message>
        <source>remove that entry</source>
        <translation>diesen Eintrag entfernen</translation>
    </message>
    <message>
        <source>{} holds conversations, but the tokenizer in {} has no chat template</source>
        <translation>{} enthält Gespräche, aber der Tokenizer in {} hat keine Chat-Vorlage</translation>
    </message>
    <message>
        <source>give text (--column), or put chat_template.jinja into the folder</source>
        <translation>Text angeben (--column), oder chat_template.jinja in den Ordner legen</translation>
    </message>
    <message>
        <source>{} texts have no tokens, the first is row {}</source>
        <translation>{} Texte haben keine Token, der erste ist Zeile {}</translation>
    </message>
    <message>
        <source>fix the row or the template</source>
        <translation>die Zeile oder die Vorlage berichtigen</translation>
    </message>
    <message>
        <source>{} cannot be used</source>
        <translation>{} kann nicht verwendet werden</translation>
    </message>
    <message>
        <source>the inputs of {} have the scheme {}, but no range was calibrated for them</source>
        <translation>die Eingaben von {} haben das Schema {}, aber kein Bereich wurde für sie kalibriert</translation>
    </message>
    <message>
        <source>calibrate first, or choose a dynamic scheme such as int8-token</source>
        <translation>erst kalibrieren, oder ein dynamisches Schema wie int8-token wählen</translation>
    </message>
    <message>
        <source>{} holds NaN or infinite values: no scale fits</source>
        <translation>{} enthält NaN oder unendliche Werte: keine Skala passt</translation>
    </message>
    <message>
        <source>{} returned an output of shape {} for a batch of {}</source>
        <translation>{} gab eine Ausgabe der Form {} für einen Batch von {} zurück</translation>
    </message>
    <message>
        <source>expected one row for each sample, samples x ...: let the model return {}</source>
        <translation>erwartet wurde eine Zeile für jedes Beispiel, Beispiele x ...: das Modell {} zurückgeben lassen</translation>
    </message>
    <message>
        <source>{} returned {}, class logits are samples x classes</source>
        <translation>{} gab {} zurück, Logits von Klassen sind Beispiele x Klassen</translation>
    </message>
    <message>
        <source>state what they are in its Python file: OUTPUT = &quot;token_classes&quot; (a class for each token), &quot;position_classes&quot; (pixels: classes along axis 1) or &quot;embedding&quot;</source>
        <translation>in der Python-Datei angeben, was es sind: OUTPUT = &quot;token_classes&quot; (eine Klasse für jedes Token), &quot;position_classes&quot; (Pixel: Klassen entlang Achse 1) oder &quot;embedding&quot;</translation>
    </message>
    <message>
        <source>{} returned {}: a single class leaves nothing to classify</source>
        <translation>{} gab {} zurück: eine einzige Klasse lässt nichts zu klassifizieren</translation>
    </message>
    <message>
        <source>state what it is in its Python file: OUTPUT = &quot;embedding&quot; (a number, compared by its square), or let it return the logits of both answers</source>
        <translation>in der Python-Datei angeben, was es ist: OUTPUT = &quot;embedding&quot; (eine Zahl, verglichen nach ihrem Quadrat), oder die Logits beider Antworten zurückgeben lassen</translation>
    </message>
    <message>
        <source>{} returned {}, detections are samples x objects x (a logit of each label, then the box: the centre&apos;s x and y, width and height in parts of the picture)</source>
        <translation>{} gab {} zurück, Detektionen sind Beispiele x Objekte x (ein Logit für jedes Label, dann der Rahmen: x und y der Mitte, Breite und Höhe in Teilen des Bildes)</translation>
    </message>
    <message>
        <source>the {} of the layer {} cannot be quantized: its weight is used inside a larger module</source>
        <translation>{} der Schicht {} kann nicht quantisiert werden: ihr Gewicht wird in einem größeren Modul verwendet</translation>
    </message>
    <message>
        <source>leave its {w} in floating point</source>
        <translation>{w} in Gleitkomma lassen</translation>
    </message>
    <message>
        <source>{} is a GGUF file without tensors (a vocabulary?)</source>
        <translation>{} ist eine GGUF-Datei ohne Tensoren (ein Vokabular?)</translation>
    </message>
    <message>
        <source>weights were expected</source>
        <translation>erwartet wurden Gewichte</translation>
    </message>
    <message>
        <source>{w}, and is not called so</source>
        <translation>{w}, und heißt nicht so</translation>
    </message>
    <message>
        <source>name it NAME-00001-of-{}.gguf, by its number</source>
        <translation>nach der Nummer benennen: NAME-00001-of-{}.gguf</translation>
    </message>
    <message>
        <source>{w}, and {} is not beside it</source>
        <translation>{w}, und {} liegt nicht daneben</translation>
    </message>
    <message>
        <source>fetch it too</source>
        <translation>auch diese holen</translation>
    </message>
    <message>
        <source>{w}, which have {} tensors, {} were expected</source>
        <translation>{w}, die {} Tensoren haben, erwartet wurden {}</translation>
    </message>
    <message>
        <source>fetch them again</source>
        <translation>sie noch einmal holen</translation>
    </message>
    <message>
        <source>{} is not a whole GGUF file</source>
        <translation>{} ist keine vollständige GGUF-Datei</translation>
    </message>
    <message>
        <source>fetch it again</source>
        <translation>noch einmal holen</translation>
    </message>
    <message>
        <source>{} is not a GGUF file: it does not begin with GGUF</source>
        <translation>{} ist keine GGUF-Datei: sie beginnt nicht mit GGUF</translation>
    </message>
    <message>
        <source>{} is a GGUF file {w}</source>
        <translation>{} ist eine GGUF-Datei {w}</translation>
    </message>
    <message>
        <source>{w}, and {} says that its number and count are {}</source>
        <translation>{w}, und {} sagt, Nummer und Anzahl seien {}</translation>
    </message>
    <message>
        <source>the tensor {} has the GGML type {}, which the package gguf does not know</source>
        <translation>der Tensor {} hat den GGML-Typ {}, den das Paket gguf nicht kennt</translation>
    </message>
    <message>
        <source>pip install -U gguf</source>
        <translation>pip install -U gguf</translation>
    </message>
    <message>
        <source>{} is a GGUF file without an importance matrix: none of its {} tensors is called NAME{}</source>
        <translation>{} ist eine GGUF-Datei ohne Importance-Matrix: keiner der {} Tensoren heißt NAME{}</translation>
    </message>
    <message>
        <source>give what llama-imatrix wrote</source>
        <translation>angeben, was llama-imatrix geschrieben hat</translation>
    </message>
    <message>
        <source>{} has the sums of {} without their counts</source>
        <translation>{} hat die Summen von {} ohne ihre Anzahlen</translation>
    </message>
    <message>
        <source>it is cut short, make it again</source>
        <translation>sie ist abgeschnitten, neu erstellen</translation>
    </message>
    <message>
        <source>{} holds {} as {}; sums and counts are F32</source>
        <translation>{} enthält {} als {}; Summen und Anzahlen sind F32</translation>
    </message>
    <message>
        <source>not an importance matrix</source>
        <translation>keine Importance-Matrix</translation>
    </message>
    <message>
        <source>{} has negative or infinite squares for {}</source>
        <translation>{} hat negative oder unendliche Quadrate für {}</translation>
    </message>
    <message>
        <source>make it again</source>
        <translation>neu erstellen</translation>
    </message>
    <message>
        <source>{} is not an importance matrix: give what llama-imatrix wrote (.gguf or .dat)</source>
        <translation>{} ist keine Importance-Matrix: angeben, was llama-imatrix geschrieben hat (.gguf oder .dat)</translation>
    </message>
    <message>
        <source>{} is not a whole importance matrix: {} entries can be read</source>
        <translation>{} ist keine vollständige Importance-Matrix: {} Einträge sind lesbar</translation>
    </message>
    <message>
        <source>{} has {} values of {} calls for {}</source>
        <translation>{} hat {} Werte aus {} Aufrufen für {}</translation>
    </message>
    <message>
        <source>it is damaged</source>
        <translation>sie ist beschädigt</translation>
    </message>
    <message>
        <source>its heads have {} numbers, and rotary embeddings take them in pairs</source>
        <translation>die Heads haben {} Zahlen, und Rotary Embeddings nehmen sie paarweise</translation>
    </message>
    <message>
        <source>GGUF files need the package gguf ({})</source>
        <translation>GGUF-Dateien brauchen das Paket gguf ({})</translation>
    </message>
    <message>
        <source>install it: pip install &apos;quantization-workbench[gguf]&apos;</source>
        <translation>installieren: pip install &apos;quantization-workbench[gguf]&apos;</translation>
    </message>
    <message>
        <source>{} has a tokenizer without a list of tokens</source>
        <translation>{} hat einen Tokenizer ohne Liste von Token</translation>
    </message>
    <message>
        <source>{} splits text as {} does, which is not supported</source>
        <translation>{} teilt Text wie {}, was nicht unterstützt wird</translation>
    </message>
    <message>
        <source>give token windows (.npy)</source>
        <translation>Fenster von Token angeben (.npy)</translation>
    </message>
    <message>
        <source>a KV cache cannot be stored in {}: its tokens come one by one, and one scale for all of them is not calibrated</source>
        <translation>ein KV-Cache kann nicht in {} gespeichert werden: seine Token kommen eines nach dem anderen, und eine Skala für alle ist nicht kalibriert</translation>
    </message>
    <message>
        <source>choose a scheme with scales for each token, such as int8-token</source>
        <translation>ein Schema mit Skalen für jedes Token wählen, wie int8-token</translation>
    </message>
    <message>
        <source>a KV cache cannot be stored in {}: its tokens come one by one</source>
        <translation>ein KV-Cache kann nicht in {} gespeichert werden: seine Token kommen eines nach dem anderen</translation>
    </message>
    <message>
        <source>choose scales for each token (int8-token), or for each channel of so many tokens (int4-b32x1-asym: of 32)</source>
        <translation>Skalen für jedes Token wählen (int8-token), oder für jeden Kanal von so vielen Token (int4-b32x1-asym: von 32)</translation>
    </message>
    <message>
        <source>the weight for {} is {}, its matrix is {}</source>
        <translation>das Gewicht für {} ist {}, die Matrix ist {}</translation>
    </message>
    <message>
        <source>the tensor for {} is {}, it has to be {}</source>
        <translation>der Tensor für {} ist {}, sein muss er {}</translation>
    </message>
    <message>
        <source>{} is empty; fetch it again</source>
        <translation>{} ist leer; noch einmal holen</translation>
    </message>
    <message>
        <source>its name {} is not UTF-8</source>
        <translation>der Name {} ist nicht UTF-8</translation>
    </message>
    <message>
        <source>save it again</source>
        <translation>noch einmal speichern</translation>
    </message>
    <message>
        <source>it holds no graph of ONNX</source>
        <translation>die Datei enthält keinen Graphen von ONNX</translation>
    </message>
    <message>
        <source>it holds sparse tensors, which are not read</source>
        <translation>die Datei enthält dünn besetzte Tensoren, die nicht gelesen werden</translation>
    </message>
    <message>
        <source>save it with dense ones</source>
        <translation>mit dichten speichern</translation>
    </message>
    <message>
        <source>its graphs are nested more than 8 deep</source>
        <translation>die Graphen sind mehr als 8 Ebenen tief verschachtelt</translation>
    </message>
    <message>
        <source>two of its tensors have the same name</source>
        <translation>zwei der Tensoren haben denselben Namen</translation>
    </message>
    <message>
        <source>no node computes its output {}</source>
        <translation>kein Knoten berechnet die Ausgabe {}</translation>
    </message>
    <message>
        <source>its tensor {} is of type {}, which is not read yet</source>
        <translation>der Tensor {} hat den Typ {}, der noch nicht gelesen wird</translation>
    </message>
    <message>
        <source>its tensor {} has the shape {}</source>
        <translation>der Tensor {} hat die Form {}</translation>
    </message>
    <message>
        <source>its tensor {} of {} has {} bytes, not {}</source>
        <translation>der Tensor {} von {} hat {} Bytes, nicht {}</translation>
    </message>
    <message>
        <source>{} keeps tensors in {}, outside its folder</source>
        <translation>{} hält Tensoren in {}, außerhalb des Ordners</translation>
    </message>
    <message>
        <source>it is not read</source>
        <translation>das wird nicht gelesen</translation>
    </message>
    <message>
        <source>ONNX files are opened with the package {}</source>
        <translation>ONNX-Dateien werden mit dem Paket {} geöffnet</translation>
    </message>
    <message>
        <source>its operator {}.{} needs a custom operator library, and a file never loads one</source>
        <translation>der Operator {}.{} braucht eine eigene Bibliothek von Operatoren, und eine Datei lädt nie eine</translation>
    </message>
    <message>
        <source>its node {} takes {}, which no node before it computes</source>
        <translation>der Knoten {} nimmt {}, das kein Knoten davor berechnet</translation>
    </message>
    <message>
        <source>its node {} defines a name that exists already</source>
        <translation>der Knoten {} definiert einen Namen, den es schon gibt</translation>
    </message>
    <message>
        <source>{} keeps tensors in {}, a link out of its folder, not read</source>
        <translation>{} hält Tensoren in {}, einem Link aus dem Ordner hinaus, nicht gelesen</translation>
    </message>
    <message>
        <source>{} keeps tensors in {}, which is not a file</source>
        <translation>{} hält Tensoren in {}, was keine Datei ist</translation>
    </message>
    <message>
        <source>{} keeps tensors in {}: it cannot be read ({w})</source>
        <translation>{} hält Tensoren in {}: nicht lesbar ({w})</translation>
    </message>
    <message>
        <source>the node {} keeps a constant in another file</source>
        <translation>der Knoten {} hält eine Konstante in einer anderen Datei</translation>
    </message>
    <message>
        <source>the tensor {} takes {} bytes at {} of {}, which has {}</source>
        <translation>der Tensor {} nimmt {} Bytes ab {} von {}, das {} hat</translation>
    </message>
    <message>
        <source>its graph multiplies with no constant weight in floating point, behind DequantizeLinear, in MatMulNBits, MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv or QGemm, so there is nothing to plan</source>
        <translation>der Graph multipliziert mit keinem konstanten Gewicht in Gleitkomma, hinter DequantizeLinear, in MatMulNBits, MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv oder QGemm, daher gibt es nichts zu planen</translation>
    </message>
    <message>
        <source>its operator {} {} lacks an input or an output</source>
        <translation>dem Operator {} {} fehlt eine Eingabe oder eine Ausgabe</translation>
    </message>
    <message>
        <source>its graph takes no input, so there is nothing to run it on</source>
        <translation>der Graph nimmt keine Eingabe, daher gibt es nichts, worauf er laufen könnte</translation>
    </message>
    <message>
        <source>its input {} is not a tensor of numbers that torch supports</source>
        <translation>die Eingabe {} ist kein Tensor von Zahlen, die torch unterstützt</translation>
    </message>
    <message>
        <source>its input {} ({}) has more than {} numbers</source>
        <translation>die Eingabe {} ({}) hat mehr als {} Zahlen</translation>
    </message>
    <message>
        <source>{} is {} in the data</source>
        <translation>{} ist {} in den Daten</translation>
    </message>
    <message>
        <source>the model takes {}</source>
        <translation>das Modell nimmt {}</translation>
    </message>
    <message>
        <source>{} differs between samples</source>
        <translation>{} ist je Beispiel verschieden</translation>
    </message>
    <message>
        <source>the graph takes one for all that run together</source>
        <translation>der Graph nimmt eines für alle, die zusammen laufen</translation>
    </message>
    <message>
        <source>these data reach what has no gradients</source>
        <translation>diese Daten erreichen etwas, das keine Gradienten hat</translation>
    </message>
    <message>
        <source>its node {} has {} {w}; {} has {}</source>
        <translation>der Knoten {} hat {} {w}; {} hat {}</translation>
    </message>
    <message>
        <source>its node {} has an attribute {} that is not of the type {}</source>
        <translation>der Knoten {} hat ein Attribut {}, das nicht vom Typ {} ist</translation>
    </message>
    <message>
        <source>MatMulNBits of {} bits is not read</source>
        <translation>MatMulNBits mit {} Bits wird nicht gelesen</translation>
    </message>
    <message>
        <source>2, 4 and 8 are</source>
        <translation>2, 4 und 8 werden es</translation>
    </message>
    <message>
        <source>{} does not fit the sizes of its MatMulNBits</source>
        <translation>{} passt nicht zu den Größen von MatMulNBits</translation>
    </message>
    <message>
        <source>there is no device {} here, there is {}</source>
        <translation>es gibt hier kein Gerät {}, es gibt {}</translation>
    </message>
    <message>
        <source>choose one of these, or auto</source>
        <translation>eines davon wählen, oder auto</translation>
    </message>
    <message>
        <source>{} {w}; choose another device, or cpu</source>
        <translation>{} {w}; ein anderes Gerät wählen, oder cpu</translation>
    </message>
    <message>
        <source>there is no dtype {} to run in</source>
        <translation>es gibt keinen dtype {}, um darin zu rechnen</translation>
    </message>
    <message>
        <source>choose {}</source>
        <translation>{} wählen</translation>
    </message>
    <message>
        <source>{} was truncated while it was open: it had {} bytes and has {}</source>
        <translation>{} wurde gekürzt, während die Datei offen war: sie hatte {} Bytes und hat {}</translation>
    </message>
    <message>
        <source>restore the file, and open the model again</source>
        <translation>die Datei wiederherstellen und das Modell neu öffnen</translation>
    </message>
    <message>
        <source>{} holds {} in {}, and {} is the most for a file of its size</source>
        <translation>{} enthält {} in {}, und {} ist das Höchste für eine Datei dieser Größe</translation>
    </message>
    <message>
        <source>if it is yours, save it without compression (np.savez)</source>
        <translation>wenn es eine eigene ist, ohne Kompression speichern (np.savez)</translation>
    </message>
    <message>
        <source>give a part of it</source>
        <translation>einen Teil davon angeben</translation>
    </message>
    <message>
        <source>there is no bundled {}</source>
        <translation>mitgeliefert ist kein {}</translation>
    </message>
    <message>
        <source>give the file and the function apart, {} and {} (--factory)</source>
        <translation>Datei und Funktion getrennt angeben, {} und {} (--factory)</translation>
    </message>
    <message>
        <source>{} has another file read in its place (configuration_files), which is not checked</source>
        <translation>{} lässt eine andere Datei an seiner Stelle lesen (configuration_files), die nicht geprüft wird</translation>
    </message>
    <message>
        <source>{} is already quantized ({}), and of those gptq, awq, bitsandbytes, compressed-tensors, fp8, fbgemm_fp8, mxfp4, modelopt, auto-round, torchao and mlx are read</source>
        <translation>{} ist schon quantisiert ({}), und davon werden gptq, awq, bitsandbytes, compressed-tensors, fp8, fbgemm_fp8, mxfp4, modelopt, auto-round, torchao und mlx gelesen</translation>
    </message>
    <message>
        <source>open the floating-point model it came from</source>
        <translation>das Gleitkommamodell öffnen, aus dem es entstand</translation>
    </message>
    <message>
        <source>{} has timm fetch the network or its weights from elsewhere ({}), where a pickle can run code</source>
        <translation>{} lässt timm das Netz oder seine Gewichte von anderswo holen ({}), wo ein Pickle Code ausführen kann</translation>
    </message>
    <message>
        <source>remove that, or open the .safetensors file for the weights only</source>
        <translation>das entfernen, oder die .safetensors-Datei nur für die Gewichte öffnen</translation>
    </message>
    <message>
        <source>{} has no function {} that builds the network</source>
        <translation>{} hat keine Funktion {}, die das Netz baut</translation>
    </message>
    <message>
        <source>define it or name another one (factory)</source>
        <translation>sie definieren oder eine andere nennen (factory)</translation>
    </message>
    <message>
        <source>the network returned a list of {} dictionaries ({}), objects chosen by their scores</source>
        <translation>das Netz gab eine Liste von {} Dictionaries zurück ({}), Objekte, die nach ihrem Wert ausgewählt sind</translation>
    </message>
    <message>
        <source>let it return what it has before the choice, samples x objects x (a logit of each label, then the box: the centre&apos;s x and y, width and height in parts of the picture), and state OUTPUT = &quot;detections&quot;</source>
        <translation>zurückgeben lassen, was es vor der Auswahl hat, Beispiele x Objekte x (ein Logit für jedes Label, dann der Rahmen: x und y der Mitte, Breite und Höhe in Teilen des Bildes), und OUTPUT = &quot;detections&quot; angeben</translation>
    </message>
    <message>
        <source>quantization_config of config.json does not say what {} needs ({}: {})</source>
        <translation>quantization_config der config.json sagt nicht, was {} braucht ({}: {})</translation>
    </message>
    <message>
        <source>{} is {}; save it dense (tensor.to_dense(), tensor.contiguous())</source>
        <translation>{} ist {}; dicht speichern (tensor.to_dense(), tensor.contiguous())</translation>
    </message>
    <message>
        <source>{} has no layer {}</source>
        <translation>{} hat keine Schicht {}</translation>
    </message>
    <message>
        <source>{} keeps no tensor {}</source>
        <translation>{} behält keinen Tensor {}</translation>
    </message>
    <message>
        <source>{} was made for the model with fingerprint {}, but {} has {}</source>
        <translation>{} wurde für das Modell mit dem Fingerabdruck {} gemacht, aber {} hat {}</translation>
    </message>
    <message>
        <source>open the model it was made for, or make a new one for this model</source>
        <translation>das Modell öffnen, für das es gemacht wurde, oder eines für dieses Modell machen</translation>
    </message>
    <message>
        <source>{} is tied to no other layer, so its tie cannot be cut</source>
        <translation>{} ist an keine andere Schicht gekoppelt, die Kopplung kann also nicht gelöst werden</translation>
    </message>
    <message>
        <source>the inputs of {} are not known, so its graph cannot be traced</source>
        <translation>die Eingaben von {} sind nicht bekannt, daher kann der Graph nicht verfolgt werden</translation>
    </message>
    <message>
        <source>calibrate it first</source>
        <translation>erst kalibrieren</translation>
    </message>
    <message>
        <source>{} cannot be rewritten</source>
        <translation>{} kann nicht umgeformt werden</translation>
    </message>
    <message>
        <source>the layer {} runs inside of another layer: its graph cannot be traced</source>
        <translation>die Schicht {} läuft in einer anderen Schicht: ihr Graph kann nicht verfolgt werden</translation>
    </message>
    <message>
        <source>{} runs with changed weights or inputs (transforms), which workers cannot open</source>
        <translation>{} läuft mit geänderten Gewichten oder Eingaben (Transformationen), die Worker nicht öffnen können</translation>
    </message>
    <message>
        <source>run this step without a cluster (--cluster)</source>
        <translation>diesen Schritt ohne Cluster (--cluster) ausführen</translation>
    </message>
    <message>
        <source>worker {} computes something else than this machine from the same model and data</source>
        <translation>der Worker {} rechnet etwas anderes als dieser Rechner aus demselben Modell und denselben Daten</translation>
    </message>
    <message>
        <source>look for a broken device or other libraries there, and take it out of the cluster until then</source>
        <translation>dort nach einem defekten Gerät oder anderen Bibliotheken suchen und ihn bis dahin aus dem Cluster nehmen</translation>
    </message>
    <message>
        <source>workers were lost {} times ({})</source>
        <translation>Worker gingen {} Mal verloren ({})</translation>
    </message>
    <message>
        <source>a worker may have too little memory: use fewer workers, fewer samples or a smaller batch</source>
        <translation>ein Worker hat vielleicht zu wenig Speicher: weniger Worker, weniger Beispiele oder kleinere Batches verwenden</translation>
    </message>
    <message>
        <source>it has {} {}, the step was started with {}</source>
        <translation>er hat {} {}, der Schritt wurde mit {} begonnen</translation>
    </message>
    <message>
        <source>install the same version</source>
        <translation>dieselbe Version installieren</translation>
    </message>
    <message>
        <source>a worker failed</source>
        <translation>ein Worker schlug fehl</translation>
    </message>
    <message>
        <source>no number format is called {}</source>
        <translation>kein Zahlenformat heißt {}</translation>
    </message>
    <message>
        <source>a matrix of shape {} holds NaN or infinite values</source>
        <translation>eine Matrix der Form {} enthält NaN oder unendliche Werte</translation>
    </message>
    <message>
        <source>{} is not understood</source>
        <translation>{} ist nicht zu verstehen</translation>
    </message>
    <message>
        <source>expected {}[-b&lt;N&gt;][-dq|-sfp16|-sbf16|-sfp32]</source>
        <translation>erwartet wurde {}[-b&lt;N&gt;][-dq|-sfp16|-sbf16|-sfp32]</translation>
    </message>
    <message>
        <source>{} of {} values of a {} x {} matrix are NaN, infinite or beyond float32</source>
        <translation>{} von {} Werten einer {} x {} Matrix sind NaN, unendlich oder jenseits von float32</translation>
    </message>
    <message>
        <source>{} stores finite values only</source>
        <translation>{} speichert nur endliche Werte</translation>
    </message>
    <message>
        <source>&apos;-{}&apos; in {} is not understood</source>
        <translation>&apos;-{}&apos; in {} ist nicht zu verstehen</translation>
    </message>
    <message>
        <source>expected {}[-tensor|-channel|-token|-g&lt;N&gt;|-b&lt;R&gt;x&lt;C&gt;][-asym[-zfp16|-zbf16|-zfp32]][-sfp16|-sbf16|-sfp32]</source>
        <translation>erwartet wurde {}[-tensor|-channel|-token|-g&lt;N&gt;|-b&lt;R&gt;x&lt;C&gt;][-asym[-zfp16|-zbf16|-zfp32]][-sfp16|-sbf16|-sfp32]</translation>
    </message>
    <message>
        <source>rows {} to {} of a {} x {} matrix hold NaN or infinite values</source>
        <translation>die Zeilen {} bis {} einer {} x {} Matrix enthalten NaN oder unendliche Werte</translation>
    </message>
    <message>
        <source>{} has no code for them</source>
        <translation>{} hat keinen Code dafür</translation>
    </message>
    <message>
        <source>{} blocks in rows {} to {} of a {} x {} matrix hold values that are NaN, infinite or beyond float32</source>
        <translation>{} Blöcke in den Zeilen {} bis {} einer {} x {} Matrix enthalten Werte, die NaN, unendlich oder jenseits von float32 sind</translation>
    </message>
    <message>
        <source>the GGML type {} is not supported</source>
        <translation>der GGML-Typ {} wird nicht unterstützt</translation>
    </message>
    <message>
        <source>a {} x {} matrix in {} needs the headers of {} x {} blocks</source>
        <translation>eine {} x {} Matrix in {} braucht die Köpfe von {} x {} Blöcken</translation>
    </message>
    <message>
        <source>a {} x {} matrix in {} takes {} bytes</source>
        <translation>eine {} x {} Matrix in {} braucht {} Bytes</translation>
    </message>
    <message>
        <source>got {w} of {w}</source>
        <translation>erhalten wurde {w} von {w}</translation>
    </message>
    <message>
        <source>{} rounds with the parameters of its own fit</source>
        <translation>{} rundet mit den Parametern der eigenen Anpassung</translation>
    </message>
    <message>
        <source>got those of another scheme</source>
        <translation>erhalten wurden die eines anderen Schemas</translation>
    </message>
    <message>
        <source>{} takes its tables from the package gguf</source>
        <translation>{} nimmt seine Tabellen aus dem Paket gguf</translation>
    </message>
    <message>
        <source>{} rounds whole vectors of weights, and this algorithm goes column by column</source>
        <translation>{} rundet ganze Vektoren von Gewichten, und dieser Algorithmus geht Spalte für Spalte</translation>
    </message>
    <message>
        <source>choose rtn-weighted</source>
        <translation>rtn-weighted wählen</translation>
    </message>
    <message>
        <source>a {} x {} matrix in {} needs the units of {} x {} blocks</source>
        <translation>eine {} x {} Matrix in {} braucht die Einheiten von {} x {} Blöcken</translation>
    </message>
    <message>
        <source>{} has no code for NaN and infinite values, and the matrix holds some</source>
        <translation>{} hat keinen Code für NaN und unendliche Werte, und die Matrix enthält welche</translation>
    </message>
    <message>
        <source>{} is only read: weights that a GGUF file holds in it keep it as they are</source>
        <translation>{} wird nur gelesen: Gewichte, die eine GGUF-Datei darin enthält, behalten es, wie sie sind</translation>
    </message>
    <message>
        <source>choose another format, such as iq4_xs, q2_k or q3_k, for others</source>
        <translation>für andere ein anderes Format wählen, wie iq4_xs, q2_k oder q3_k</translation>
    </message>
    <message>
        <source>a {} x {} matrix in {} has {} bytes</source>
        <translation>eine {} x {} Matrix in {} hat {} Bytes</translation>
    </message>
    <message>
        <source>{} is decoded by the package gguf</source>
        <translation>{} wird vom Paket gguf dekodiert</translation>
    </message>
    <message>
        <source>expected kmeans&lt;2|3|4&gt;[-channel|-tensor|-g&lt;N&gt;][-sfp16|-sbf16|-sfp32]</source>
        <translation>erwartet wurde kmeans&lt;2|3|4&gt;[-channel|-tensor|-g&lt;N&gt;][-sfp16|-sbf16|-sfp32]</translation>
    </message>
    <message>
        <source>a matrix of shape {} x {} holds NaN</source>
        <translation>eine Matrix der Form {} x {} enthält NaN</translation>
    </message>
    <message>
        <source>it has no code</source>
        <translation>dafür gibt es keinen Code</translation>
    </message>
    <message>
        <source>{} takes no zero point</source>
        <translation>{} nimmt keinen Nullpunkt</translation>
    </message>
    <message>
        <source>only integers can be asymmetric</source>
        <translation>nur ganze Zahlen können asymmetrisch sein</translation>
    </message>
    <message>
        <source>a symmetric {} has no zero point, so none in {}</source>
        <translation>ein symmetrisches {} hat keinen Nullpunkt, also keinen in {}</translation>
    </message>
    <message>
        <source>nothing was observed, so a range has no error</source>
        <translation>nichts wurde beobachtet, daher hat ein Bereich keinen Fehler</translation>
    </message>
    <message>
        <source>calibrate first</source>
        <translation>erst kalibrieren</translation>
    </message>
    <message>
        <source>nothing was observed, so no range can be formed</source>
        <translation>nichts wurde beobachtet, daher kann kein Bereich gebildet werden</translation>
    </message>
    <message>
        <source>expected at least 2 candidates</source>
        <translation>erwartet wurden mindestens 2 Kandidaten</translation>
    </message>
    <message>
        <source>got {w}</source>
        <translation>erhalten wurde {w}</translation>
    </message>
    <message>
        <source>expected at least 2 candidates and 0 &lt; least &lt; 1</source>
        <translation>erwartet wurden mindestens 2 Kandidaten und 0 &lt; least &lt; 1</translation>
    </message>
    <message>
        <source>expected a percentile above 0 and up to 100</source>
        <translation>erwartet wurde ein Perzentil über 0 und bis 100</translation>
    </message>
    <message>
        <source>the checkpoint holds other variables than this run</source>
        <translation>der Checkpoint enthält andere Variablen als dieser Lauf</translation>
    </message>
    <message>
        <source>remove it to start again</source>
        <translation>entfernen, um von vorn zu beginnen</translation>
    </message>
    <message>
        <source>calibrate on more data, or choose rtn-clip</source>
        <translation>auf mehr Daten kalibrieren, oder rtn-clip wählen</translation>
    </message>
    <message>
        <source>{} calibration samples are too few for {} inputs: their second moment has rank {}</source>
        <translation>{} Kalibrierbeispiele sind zu wenige für {} Eingaben: ihr zweites Moment hat den Rang {}</translation>
    </message>
    <message>
        <source>calibrate on at least {} tokens, or choose rtn-clip</source>
        <translation>auf mindestens {} Token kalibrieren, oder rtn-clip wählen</translation>
    </message>
    <message>
        <source>a {} x {} weight needs {} x {}</source>
        <translation>ein {} x {} Gewicht braucht {} x {}</translation>
    </message>
    <message>
        <source>calibrate on other data</source>
        <translation>auf anderen Daten kalibrieren</translation>
    </message>
    <message>
        <source>hqq moves zero points, and {} has none for each row or group</source>
        <translation>hqq verschiebt Nullpunkte, und {} hat keinen für jede Zeile oder Gruppe</translation>
    </message>
    <message>
        <source>choose an asymmetric integer scheme such as int4-g64-asym</source>
        <translation>ein asymmetrisches ganzzahliges Schema wie int4-g64-asym wählen</translation>
    </message>
    <message>
        <source>AdaRound/SignRound (&apos;learned&apos;) needs the second moment of the inputs</source>
        <translation>AdaRound/SignRound (&apos;learned&apos;) braucht das zweite Moment der Eingaben</translation>
    </message>
    <message>
        <source>calibrate with curvature first</source>
        <translation>erst mit Krümmung kalibrieren</translation>
    </message>
    <message>
        <source>{} needs the second moment of the inputs of {}, which no calibration has collected</source>
        <translation>{} braucht das zweite Moment der Eingaben von {}, das keine Kalibrierung gesammelt hat</translation>
    </message>
    <message>
        <source>calibrate with curvature and give the session, or choose rtn-clip</source>
        <translation>mit Krümmung kalibrieren und die Sitzung angeben, oder rtn-clip wählen</translation>
    </message>
    <message>
        <source>{} quantizes {} after all layers before it, with the calibration&apos;s data at hand</source>
        <translation>{} quantisiert {} nach allen Schichten davor, mit den Daten der Kalibrierung zur Hand</translation>
    </message>
    <message>
        <source>for a single layer, or one whose inputs&apos; second moment is not collected, choose gptq or rtn-clip</source>
        <translation>für eine einzelne Schicht, oder eine, deren zweites Moment der Eingaben nicht gesammelt ist, gptq oder rtn-clip wählen</translation>
    </message>
    <message>
        <source>it can only stay in floating point</source>
        <translation>es kann nur in Gleitkomma bleiben</translation>
    </message>
    <message>
        <source>{} cannot round {} to {}</source>
        <translation>{} kann {} nicht auf {} runden</translation>
    </message>
    <message>
        <source>rtn-weighted needs the importance of the inputs</source>
        <translation>rtn-weighted braucht die Wichtigkeit der Eingaben</translation>
    </message>
    <message>
        <source>calibrate first, or choose rtn-clip</source>
        <translation>erst kalibrieren, oder rtn-clip wählen</translation>
    </message>
    <message>
        <source>{} stores weights in blocks with scales of their own</source>
        <translation>{} speichert Gewichte in Blöcken mit eigenen Skalen</translation>
    </message>
    <message>
        <source>it cannot hold activations of a fixed range. Choose an int8, fp8 or 16-bit format for inputs</source>
        <translation>Aktivierungen in einem festen Bereich kann es nicht fassen. Für Eingaben ein Format in int8, fp8 oder 16 Bits wählen</translation>
    </message>
    <message>
        <source>expected a finite range with low &lt;= high</source>
        <translation>erwartet wurde ein endlicher Bereich mit low &lt;= high</translation>
    </message>
    <message>
        <source>got [{}, {w}]</source>
        <translation>erhalten wurde [{}, {w}]</translation>
    </message>
    <message>
        <source>{} stores a floating-point matrix</source>
        <translation>{} speichert eine Matrix in Gleitkomma</translation>
    </message>
    <message>
        <source>got {} of shape {}</source>
        <translation>erhalten wurde {} der Form {}</translation>
    </message>
    <message>
        <source>the {} table has no column for {}</source>
        <translation>die Tabelle {} hat keine Spalte für {}</translation>
    </message>
    <message>
        <source>score that scheme first or leave it out of the search</source>
        <translation>dieses Schema erst bewerten oder aus der Suche lassen</translation>
    </message>
    <message>
        <source>{} is {} {}, which {} cannot run</source>
        <translation>{} hat {} {}, was {} nicht ausführen kann</translation>
    </message>
    <message>
        <source>there is no hardware profile {}</source>
        <translation>es gibt kein Hardwareprofil {}</translation>
    </message>
    <message>
        <source>a KV cache in {} needs {}, and no layer that is free to change is one{}</source>
        <translation>ein KV-Cache in {} braucht {}, und keine Schicht, die geändert werden darf, ist das{}</translation>
    </message>
    <message>
        <source>the plan stores what {} gives the KV cache in {}, but a cache needs {}</source>
        <translation>der Plan speichert das, was {} dem KV-Cache gibt, in {}, aber ein Cache braucht {}</translation>
    </message>
    <message>
        <source>take the cache scheme out</source>
        <translation>das Schema für den Cache herausnehmen</translation>
    </message>
    <message>
        <source>correct the pattern or remove the rule</source>
        <translation>das Muster berichtigen oder die Regel entfernen</translation>
    </message>
    <message>
        <source>raise the budget or allow smaller schemes{}</source>
        <translation>das Budget erhöhen oder kleinere Schemata erlauben{}</translation>
    </message>
    <message>
        <source>a budget of loss counts what {w}, and {} {w} of {} was not scored</source>
        <translation>ein Budget für den Verlust zählt, was {w}, und {} {w} von {} wurde nicht bewertet</translation>
    </message>
    <message>
        <source>score it first, or search by bytes or bits per weight</source>
        <translation>es erst bewerten, oder nach Bytes oder Bits je Gewicht suchen</translation>
    </message>
    <message>
        <source>a search cannot minimise {}</source>
        <translation>eine Suche kann {} nicht minimieren</translation>
    </message>
    <message>
        <source>expected one of {}</source>
        <translation>erwartet wurde eines von {}</translation>
    </message>
    <message>
        <source>a search needs a budget: bytes, bits per weight, microseconds or loss, or several of them</source>
        <translation>eine Suche braucht ein Budget: Bytes, Bits je Gewicht, Mikrosekunden oder Verlust, oder mehrere davon</translation>
    </message>
    <message>
        <source>the front has {} plans, numbered from 0</source>
        <translation>die Front hat {} Pläne, nummeriert ab 0</translation>
    </message>
    <message>
        <source>the {} table has no scheme of {} levels, as {} has</source>
        <translation>die Tabelle {} hat kein Schema mit {} Stufen, wie {} sie hat</translation>
    </message>
    <message>
        <source>score {} first</source>
        <translation>erst {} bewerten</translation>
    </message>
    <message>
        <source>this strategy takes budgets of bytes or bits per weight only</source>
        <translation>diese Strategie nimmt nur Budgets in Bytes oder Bits je Gewicht</translation>
    </message>
    <message>
        <source>use the strategy optimal</source>
        <translation>die Strategie optimal verwenden</translation>
    </message>
    <message>
        <source>score that scheme first or choose another</source>
        <translation>dieses Schema erst bewerten oder ein anderes wählen</translation>
    </message>
    <message>
        <source>no plan of the strategy {} fits into {}: the smallest takes {} bytes, {} bits per weight</source>
        <translation>kein Plan der Strategie {} passt in {}: der kleinste braucht {} Bytes, {} Bits je Gewicht</translation>
    </message>
    <message>
        <source>raise the budget or use the strategy optimal</source>
        <translation>das Budget erhöhen oder die Strategie optimal verwenden</translation>
    </message>
    <message>
        <source>there is no strategy {}</source>
        <translation>es gibt keine Strategie {}</translation>
    </message>
    <message>
        <source>there is no transform {}</source>
        <translation>es gibt keine Transformation {}</translation>
    </message>
    <message>
        <source>{} compares the rounded model with the original on the calibration&apos;s data, and none is given</source>
        <translation>{} vergleicht das gerundete Modell mit dem Original auf den Daten der Kalibrierung, und keine sind angegeben</translation>
    </message>
    <message>
        <source>calibrate first (--session S.qwb gives the session), or take {} out of the plan&apos;s transforms</source>
        <translation>erst kalibrieren (--session S.qwb gibt die Sitzung an), oder {} aus den Transformationen des Plans nehmen</translation>
    </message>
    <message>
        <source>bias-correction: {} has neither a bias nor a batch norm behind it, nor has any other quantized layer</source>
        <translation>bias-correction: {} hat weder einen Bias noch eine Batch-Norm dahinter, und keine andere quantisierte Schicht hat das</translation>
    </message>
    <message>
        <source>take bias-correction out of the plan</source>
        <translation>bias-correction aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>{} cannot be run, so its batch norms cannot be measured</source>
        <translation>{} kann nicht ausgeführt werden, daher können die Batch-Norms nicht gemessen werden</translation>
    </message>
    <message>
        <source>norm-reestimation: {} has no batch norm with running statistics ({w})</source>
        <translation>norm-reestimation: {} hat keine Batch-Norm mit laufenden Statistiken ({w})</translation>
    </message>
    <message>
        <source>take norm-reestimation out of the plan, or use bias-correction</source>
        <translation>norm-reestimation aus dem Plan nehmen, oder bias-correction verwenden</translation>
    </message>
    <message>
        <source>the checkpoint {} belongs to another run (model, plan, data or options differ)</source>
        <translation>der Checkpoint {} gehört zu einem anderen Lauf (Modell, Plan, Daten oder Optionen sind anders)</translation>
    </message>
    <message>
        <source>give another path, or remove it to start again</source>
        <translation>einen anderen Pfad angeben, oder ihn entfernen, um von vorn zu beginnen</translation>
    </message>
    <message>
        <source>the checkpoint {} cannot be read</source>
        <translation>der Checkpoint {} kann nicht gelesen werden</translation>
    </message>
    <message>
        <source>the task loss needs class labels or tokens</source>
        <translation>der Verlust der Aufgabe braucht Labels von Klassen oder Token</translation>
    </message>
    <message>
        <source>give data with labels, or train on the loss kl</source>
        <translation>Daten mit Labels angeben, oder auf den Verlust kl trainieren</translation>
    </message>
    <message>
        <source>{} steps of {} samples are not possible</source>
        <translation>{} Schritte mit {} Beispielen sind nicht möglich</translation>
    </message>
    <message>
        <source>at least 1 of each is needed</source>
        <translation>von jedem wird mindestens 1 gebraucht</translation>
    </message>
    <message>
        <source>a learning rate of {} is not possible</source>
        <translation>eine Lernrate von {} ist nicht möglich</translation>
    </message>
    <message>
        <source>it must not be negative</source>
        <translation>sie darf nicht negativ sein</translation>
    </message>
    <message>
        <source>{} diverged at step {}: the loss is {}</source>
        <translation>{} divergierte bei Schritt {}: der Verlust ist {}</translation>
    </message>
    <message>
        <source>{} quantizes {} with the calibration&apos;s data, and none is given</source>
        <translation>{} quantisiert {} mit den Daten der Kalibrierung, und keine sind angegeben</translation>
    </message>
    <message>
        <source>calibrate and give the session, or choose rtn-clip, which looks at weights only</source>
        <translation>kalibrieren und die Sitzung angeben, oder rtn-clip wählen, das nur Gewichte ansieht</translation>
    </message>
    <message>
        <source>the plan learns the rounding of {} on calibration data, and none were given</source>
        <translation>der Plan lernt das Runden von {} auf Kalibrierdaten, und keine wurden angegeben</translation>
    </message>
    <message>
        <source>calibrate and give the session, or choose rtn-clip</source>
        <translation>kalibrieren und die Sitzung angeben, oder rtn-clip wählen</translation>
    </message>
    <message>
        <source>the plan quantizes no layer, so there is nothing to train</source>
        <translation>der Plan quantisiert keine Schicht, daher gibt es nichts zu trainieren</translation>
    </message>
    <message>
        <source>give at least one layer a scheme</source>
        <translation>mindestens einer Schicht ein Schema geben</translation>
    </message>
    <message>
        <source>the plan transforms the model ({}), training starts from the model as it is</source>
        <translation>der Plan transformiert das Modell ({}), das Training beginnt beim Modell, wie es ist</translation>
    </message>
    <message>
        <source>take the transforms out of the plan to train on it</source>
        <translation>die Transformationen aus dem Plan nehmen, um darauf zu trainieren</translation>
    </message>
    <message>
        <source>{} cannot be transformed ({})</source>
        <translation>{} kann nicht transformiert werden ({})</translation>
    </message>
    <message>
        <source>after {} the outputs of {} differ by {} of the largest output, {} is allowed: its graph does more than the trace shows</source>
        <translation>nach {} weichen die Ausgaben von {} um {} der größten Ausgabe ab, erlaubt ist {}: der Graph tut mehr, als die Spur zeigt</translation>
    </message>
    <message>
        <source>take the transform out of the plan</source>
        <translation>die Transformation aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>the plan gives the inputs of {} the scheme {} and transforms them, so their range must be calibrated again, which needs the calibration data</source>
        <translation>der Plan gibt den Eingaben von {} das Schema {} und transformiert sie, daher muss ihr Bereich neu kalibriert werden, was die Kalibrierdaten braucht</translation>
    </message>
    <message>
        <source>{} has no batch norm that could be folded</source>
        <translation>{} hat keine Batch-Norm, die sich einrechnen ließe</translation>
    </message>
    <message>
        <source>take fold-norms out of the plan</source>
        <translation>fold-norms aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>{} has no two layers that could be equalized</source>
        <translation>{} hat keine zwei Schichten, die sich ausgleichen ließen</translation>
    </message>
    <message>
        <source>take equalize out of the plan</source>
        <translation>equalize aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>{} has no place where a scale can be moved from one layer into another</source>
        <translation>{} hat keine Stelle, an der eine Skala von einer Schicht in eine andere verschoben werden kann</translation>
    </message>
    <message>
        <source>{} finds nothing to rotate in {}: the plan quantizes no linear layer of an even number of inputs behind an activation function</source>
        <translation>{} findet nichts zu drehen in {}: der Plan quantisiert keine lineare Schicht mit gerader Anzahl von Eingaben hinter einer Aktivierungsfunktion</translation>
    </message>
    <message>
        <source>take it out</source>
        <translation>herausnehmen</translation>
    </message>
    <message>
        <source>the norm {} adds a bias, which a rotation cannot pass</source>
        <translation>die Norm {} addiert einen Bias, durch den eine Rotation nicht hindurchgeht</translation>
    </message>
    <message>
        <source>take it out of the plan</source>
        <translation>sie aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>take rotation-heads out of the plan</source>
        <translation>rotation-heads aus dem Plan nehmen</translation>
    </message>
    <message>
        <source>{} holds NaN or infinite values, which a rotation would spread over the whole layer</source>
        <translation>{} enthält NaN oder unendliche Werte, die eine Rotation über die ganze Schicht verteilen würde</translation>
    </message>
    <message>
        <source>take rotation out of the plan, or repair the weight</source>
        <translation>rotation aus dem Plan nehmen, oder das Gewicht reparieren</translation>
    </message>
    <message>
        <source>awq needs the second moment of the inputs of {}, which was not collected</source>
        <translation>awq braucht das zweite Moment der Eingaben von {}, das nicht gesammelt wurde</translation>
    </message>
    <message>
        <source>calibrate with curvature first, or take awq out of the plan&apos;s transforms</source>
        <translation>erst mit Krümmung kalibrieren, oder awq aus den Transformationen des Plans nehmen</translation>
    </message>
    <message>
        <source>smoothquant needs calibration data to see the inputs of layers</source>
        <translation>smoothquant braucht Kalibrierdaten, um die Eingaben der Schichten zu sehen</translation>
    </message>
    <message>
        <source>calibrate first, or take smoothquant out of the plan&apos;s transforms</source>
        <translation>erst kalibrieren, oder smoothquant aus den Transformationen des Plans nehmen</translation>
    </message>
    <message>
        <source>the residual stream meets {}, through which a rotation cannot pass</source>
        <translation>der Residualstrom trifft auf {}, durch das eine Rotation nicht hindurchgeht</translation>
    </message>
    <message>
        <source>{} cannot be rotated</source>
        <translation>{} kann nicht gedreht werden</translation>
    </message>
    <message>
        <source>{} has no decoder layer that makes keys or values alone (k_proj, v_proj, key, value){}</source>
        <translation>{} hat keine Decoderschicht, die nur Keys oder Values macht (k_proj, v_proj, key, value){}</translation>
    </message>
    <message>
        <source>its cache stays as computed</source>
        <translation>der Cache bleibt, wie er berechnet ist</translation>
    </message>
    <message>
        <source>no tap sees the activations of a layer {}</source>
        <translation>kein Tap sieht die Aktivierungen einer Schicht {}</translation>
    </message>
    <message>
        <source>the plan quantizes no layer, so there is nothing to audit</source>
        <translation>der Plan quantisiert keine Schicht, daher gibt es nichts zu prüfen</translation>
    </message>
    <message>
        <source>no output of a block was seen ({})</source>
        <translation>keine Ausgabe eines Blocks war zu sehen ({})</translation>
    </message>
    <message>
        <source>is this a view of the model?</source>
        <translation>ist das eine Ansicht des Modells?</translation>
    </message>
    <message>
        <source>the {} table has no score for {} in {}</source>
        <translation>die Tabelle {} hat keinen Wert für {} in {}</translation>
    </message>
    <message>
        <source>score that scheme first</source>
        <translation>dieses Schema erst bewerten</translation>
    </message>
    <message>
        <source>there is no metric {}</source>
        <translation>es gibt kein Maß {}</translation>
    </message>
    <message>
        <source>the metrics are {}</source>
        <translation>die Maße sind {}</translation>
    </message>
    <message>
        <source>hessian_trace needs the calibrated curvature, and the session holds none</source>
        <translation>hessian_trace braucht die kalibrierte Krümmung, und die Sitzung enthält keine</translation>
    </message>
    <message>
        <source>calibrate</source>
        <translation>kalibrieren</translation>
    </message>
    <message>
        <source>the {} table is derived from others and is not computed by itself</source>
        <translation>die Tabelle {} wird aus anderen abgeleitet und nicht für sich berechnet</translation>
    </message>
    <message>
        <source>output_error needs calibrated curvature or data</source>
        <translation>output_error braucht kalibrierte Krümmung oder Daten</translation>
    </message>
    <message>
        <source>calibrate, or give a data set</source>
        <translation>kalibrieren, oder einen Datensatz angeben</translation>
    </message>
    <message>
        <source>a predicted loss needs the curvature of a calibration, or calibration data for convolutions and weights inside larger modules</source>
        <translation>ein vorhergesagter Verlust braucht die Krümmung einer Kalibrierung, oder Kalibrierdaten für Faltungen und Gewichte in größeren Modulen</translation>
    </message>
    <message>
        <source>calibrate with curvature first, or use the metric weight_error, which needs neither</source>
        <translation>erst mit Krümmung kalibrieren, oder das Maß weight_error verwenden, das beides nicht braucht</translation>
    </message>
    <message>
        <source>the measured table to go on with was made with other data or options</source>
        <translation>die gemessene Tabelle, die fortgesetzt werden soll, entstand mit anderen Daten oder Optionen</translation>
    </message>
    <message>
        <source>start a new one</source>
        <translation>eine neue beginnen</translation>
    </message>
    <message>
        <source>there is nothing to score: give at least one layer and one activation scheme</source>
        <translation>es gibt nichts zu bewerten: mindestens eine Schicht und ein Schema für Aktivierungen angeben</translation>
    </message>
    <message>
        <source>the model has no layer {}</source>
        <translation>das Modell hat keine Schicht {}</translation>
    </message>
    <message>
        <source>{} needs data to run the model on</source>
        <translation>{} braucht Daten, um das Modell darauf auszuführen</translation>
    </message>
    <message>
        <source>give a data set</source>
        <translation>einen Datensatz angeben</translation>
    </message>
    <message>
        <source>{} is not an array of numbers</source>
        <translation>{} ist kein Array von Zahlen</translation>
    </message>
    <message>
        <source>{} has {} axes, {} were expected</source>
        <translation>{} hat {} Achsen, erwartet wurden {}</translation>
    </message>
    <message>
        <source>{} is not a list of strings</source>
        <translation>{} ist keine Liste von Texten</translation>
    </message>
    <message>
        <source>{} holds {}, expected one of {}</source>
        <translation>{} enthält {}, erwartet wurde eines von {}</translation>
    </message>
    <message>
        <source>/error_budget has arrays that do not fit {} layers and {} blocks</source>
        <translation>/error_budget hat Arrays, die nicht zu {} Schichten und {} Blöcken passen</translation>
    </message>
    <message>
        <source>/audit has losses that do not fit its {} layers</source>
        <translation>/audit hat Verluste, die nicht zu seinen {} Schichten passen</translation>
    </message>
    <message>
        <source>/evaluations: a {} refers to evaluation {}, there are {}</source>
        <translation>/evaluations: {} verweist auf die Auswertung {}, es gibt {}</translation>
    </message>
    <message>
        <source>{} has a negative count in the statistics of {} ({})</source>
        <translation>{} hat eine negative Anzahl in den Statistiken von {} ({})</translation>
    </message>
    <message>
        <source>{} has scores of {} of shape {}, expected {}</source>
        <translation>{} hat Werte von {} der Form {}, erwartet wurde {}</translation>
    </message>
    <message>
        <source>{} has a negative count in the curvature of {}</source>
        <translation>{} hat eine negative Anzahl in der Krümmung von {}</translation>
    </message>
    <message>
        <source>{} has the attribute {} {}, expected one of type {}</source>
        <translation>{} hat das Attribut {} {}, erwartet wurde eines vom Typ {}</translation>
    </message>
    <message>
        <source>{} has no attribute {}</source>
        <translation>{} hat kein Attribut {}</translation>
    </message>
    <message>
        <source>{} is of the type {}, {} was expected</source>
        <translation>{} ist vom Typ {}, erwartet wurde {}</translation>
    </message>
    <message>
        <source>{} has version {}, this workbench reads version 1</source>
        <translation>{} hat Version {}, diese Workbench liest Version 1</translation>
    </message>
    <message>
        <source>{} holds values that do not fit together</source>
        <translation>{} enthält Werte, die nicht zusammenpassen</translation>
    </message>
    <message>
        <source>{} has {} {}, expected one of {}</source>
        <translation>{} hat {} {}, erwartet wurde eines von {}</translation>
    </message>
    <message>
        <source>{} has columns of different lengths</source>
        <translation>{} hat Spalten verschiedener Länge</translation>
    </message>
    <message>
        <source>{} has the fact {} {}, expected a number, a text or a truth value</source>
        <translation>{} hat die Angabe {} {}, erwartet wurde eine Zahl, ein Text oder ein Wahrheitswert</translation>
    </message>
    <message>
        <source>more than {} of its parts are damaged</source>
        <translation>mehr als {} der Teile sind beschädigt</translation>
    </message>
    <message>
        <source>no process could be started to read it</source>
        <translation>es konnte kein Prozess gestartet werden, um die Datei zu lesen</translation>
    </message>
    <message>
        <source>the journal {} holds no whole edit</source>
        <translation>das Journal {} enthält keine vollständige Änderung</translation>
    </message>
    <message>
        <source>the session holds no sensitivity table</source>
        <translation>die Sitzung enthält keine Tabelle der Empfindlichkeit</translation>
    </message>
    <message>
        <source>compute the sensitivity first</source>
        <translation>erst die Empfindlichkeit berechnen</translation>
    </message>
    <message>
        <source>{} inputs need calibrated ranges, which a plan does not hold</source>
        <translation>{} Eingaben brauchen kalibrierte Bereiche, die ein Plan nicht enthält</translation>
    </message>
    <message>
        <source>calibrate first (--session S.qwb gives the session)</source>
        <translation>erst kalibrieren (--session S.qwb gibt die Sitzung an)</translation>
    </message>
    <message>
        <source>there is no layer {} in {}</source>
        <translation>es gibt keine Schicht {} in {}</translation>
    </message>
    <message>
        <source>the algorithm {} rounds weights, and {} scores activations</source>
        <translation>der Algorithmus {} rundet Gewichte, und {} bewertet Aktivierungen</translation>
    </message>
    <message>
        <source>leave it out</source>
        <translation>weglassen</translation>
    </message>
    <message>
        <source>the strategy {} minimises nothing</source>
        <translation>die Strategie {} minimiert nichts</translation>
    </message>
    <message>
        <source>give one, or use optimal</source>
        <translation>eines angeben, oder optimal verwenden</translation>
    </message>
    <message>
        <source>an audit corrects predicted_kl, and the losses here are {}</source>
        <translation>eine Prüfung berichtigt predicted_kl, und die Verluste hier sind {}</translation>
    </message>
    <message>
        <source>leave the correction out</source>
        <translation>die Berichtigung weglassen</translation>
    </message>
    <message>
        <source>the audit of “{}” has no correction: its plan had no predicted loss</source>
        <translation>die Prüfung von „{}“ hat keine Berichtigung: ihr Plan hatte keinen vorhergesagten Verlust</translation>
    </message>
    <message>
        <source>audit a plan whose layers are all scored</source>
        <translation>einen Plan prüfen, dessen Schichten alle bewertet sind</translation>
    </message>
    <message>
        <source>the range method {} is for inputs, and the plan rounds none</source>
        <translation>das Verfahren für Bereiche {} gilt für Eingaben, und der Plan rundet keine</translation>
    </message>
    <message>
        <source>a choice of activation schemes needs their losses in nats, and {} were not scored</source>
        <translation>eine Wahl von Schemata für Aktivierungen braucht deren Verluste in nats, und {} wurden nicht bewertet</translation>
    </message>
    <message>
        <source>score them first</source>
        <translation>sie erst bewerten</translation>
    </message>
    <message>
        <source>got the batch sizes {}</source>
        <translation>erhalten wurden die Batchgrößen {}</translation>
    </message>
    <message>
        <source>each must be at least 1</source>
        <translation>jede muss mindestens 1 sein</translation>
    </message>
    <message>
        <source>{} holds no weights, which is what training changes</source>
        <translation>{} enthält keine Gewichte, die ein Training ändert</translation>
    </message>
    <message>
        <source>choose another kind</source>
        <translation>eine andere Art wählen</translation>
    </message>
    <message>
        <source>{w}; install it: pip install --upgrade &apos;quantization-workbench[{}]&apos;</source>
        <translation>{w}; installieren: pip install --upgrade &apos;quantization-workbench[{}]&apos;</translation>
    </message>
    <message>
        <source>its options are {}</source>
        <translation>seine Optionen sind {}</translation>
    </message>
    <message>
        <source>it has no options</source>
        <translation>es hat keine Optionen</translation>
    </message>
    <message>
        <source>use fewer samples or a smaller batch, or close other programs ({})</source>
        <translation>weniger Beispiele oder kleinere Batches verwenden, oder andere Programme schließen ({})</translation>
    </message>
    <message>
        <source>those of {} bits in gptq and gptq_v2 are read</source>
        <translation>gelesen werden die von {} Bits in gptq und gptq_v2</translation>
    </message>
    <message>
        <source>{} holds {}; the model also needs {}, or labels in place of the decoder&apos;s ids</source>
        <translation>{} enthält {}; das Modell braucht auch {}, oder Labels anstelle der IDs des Decoders</translation>
    </message>
    <message>
        <source>the data {} does not exist</source>
        <translation>die Daten {} existieren nicht</translation>
    </message>
    <message>
        <source>{} is data of an unknown kind ({})</source>
        <translation>{} enthält Daten unbekannter Art ({})</translation>
    </message>
    <message>
        <source>turn it round with gguf-convert-endian FILE little</source>
        <translation>mit gguf-convert-endian DATEI little umdrehen</translation>
    </message>
    <message>
        <source>{} is a GGUF file of version {}, versions {} and {} are known</source>
        <translation>{} ist eine GGUF-Datei der Version {}, bekannt sind die Versionen {} und {}</translation>
    </message>
    <message>
        <source>convert it again</source>
        <translation>noch einmal umwandeln</translation>
    </message>
    <message>
        <source>this torch was built without CUDA</source>
        <translation>dieses torch wurde ohne CUDA gebaut</translation>
    </message>
    <message>
        <source>{} does not exist</source>
        <translation>{} existiert nicht</translation>
    </message>
    <message>
        <source>if {} is a model of the Hugging Face Hub, fetch it first: hf download {}</source>
        <translation>wenn {} ein Modell des Hugging Face Hub ist, es erst holen: hf download {}</translation>
    </message>
    <message>
        <source>{} is a pickled module ({}), and opening it would run the code that it contains</source>
        <translation>{} ist ein Modul als Pickle ({}), und es zu öffnen würde den Code darin ausführen</translation>
    </message>
    <message>
        <source>save its state dict where it was made, safetensors.torch.save_file(model.state_dict(), &apos;model.safetensors&apos;), and open that together with the Python file that builds the network</source>
        <translation>den State-Dict speichern, wo es entstand, safetensors.torch.save_file(model.state_dict(), &apos;model.safetensors&apos;), und diesen zusammen mit der Python-Datei öffnen, die das Netz baut</translation>
    </message>
    <message>
        <source>{} was not written by torch.save or is damaged ({w})</source>
        <translation>{} wurde nicht von torch.save geschrieben oder ist beschädigt ({w})</translation>
    </message>
    <message>
        <source>fetch it again or save its state dict where it was made, safetensors.torch.save_file(model.state_dict(), &apos;model.safetensors&apos;), and open that together with the Python file that builds the network</source>
        <translation>noch einmal holen, oder den State-Dict speichern, wo es entstand, safetensors.torch.save_file(model.state_dict(), &apos;model.safetensors&apos;), und diesen zusammen mit der Python-Datei öffnen, die das Netz baut</translation>
    </message>
    <message>
        <source>no kernel was timed</source>
        <translation>kein Kernel wurde gemessen</translation>
    </message>
    <message>
        <source>time the kernels first</source>
        <translation>erst die Zeiten der Kernel messen</translation>
    </message>
    <message>
        <source>no kernel was timed at batch size {}</source>
        <translation>kein Kernel wurde bei der Batchgröße {} gemessen</translation>
    </message>
    <message>
        <source>the rule {} is not a valid regular expression</source>
        <translation>die Regel {} ist kein gültiger regulärer Ausdruck</translation>
    </message>
    <message>
        <source>instead of a look-around, let a later rule take names back</source>
        <translation>statt eines Look-around nimmt eine spätere Regel Namen zurück</translation>
    </message>
    <message>
        <source>decoder layers with a name of those that make keys and values (k_proj, v_proj, key, value)</source>
        <translation>Decoderschichten mit Namen von solchen, die Keys und Values machen (k_proj, v_proj, key, value)</translation>
    </message>
    <message>
        <source>a KV cache in {} needs {w}, and no layer that is free to change is one</source>
        <translation>ein KV-Cache in {} braucht {w}, und keine Schicht, die geändert werden darf, ist eine</translation>
    </message>
    <message>
        <source>the plan stores what {} gives the KV cache in {}, but a cache needs {w}</source>
        <translation>der Plan speichert das, was {} dem KV-Cache gibt, in {}, aber ein Cache braucht {w}</translation>
    </message>
    <message>
        <source>the text ends too early: is the file truncated?</source>
        <translation>der Text endet zu früh: ist die Datei abgeschnitten?</translation>
    </message>
    <message>
        <source>no plan fits into {}: {w} under the other budgets</source>
        <translation>kein Plan passt in {}: {w} unter den anderen Budgets</translation>
    </message>
    <message>
        <source>fold-norms folded {}</source>
        <translation>fold-norms hat {} eingerechnet</translation>
    </message>
    <message>
        <source>none follows {} or any layer</source>
        <translation>keine folgt auf {} oder eine andere Schicht</translation>
    </message>
    <message>
        <source>none follows a layer or any layer</source>
        <translation>keine folgt auf eine Schicht</translation>
    </message>
    <message>
        <source>of {} norms and linear layers, {}</source>
        <translation>von {} Normen und linearen Schichten, {}</translation>
    </message>
    <message>
        <source>it has no norm or linear layer</source>
        <translation>es hat keine Norm oder lineare Schicht</translation>
    </message>
    <message>
        <source>only models with RMS norms and a residual stream can be rotated, Llama and its kin</source>
        <translation>nur Modelle mit RMS-Normen und einem Residualstrom lassen sich drehen, Llama und Verwandte</translation>
    </message>
    <message>
        <source>no layer reads and writes a residual stream</source>
        <translation>keine Schicht liest und schreibt einen Residualstrom</translation>
    </message>
    <message>
        <source>{} has no decoder layer that makes keys or values alone (k_proj, v_proj, key, value)</source>
        <translation>{} hat keine Decoderschicht, die nur Keys oder Values macht (k_proj, v_proj, key, value)</translation>
    </message>
    <message>
        <source>the session {} is damaged</source>
        <translation>die Sitzung {} ist beschädigt</translation>
    </message>
    <message>
        <source>use a backup or an autosave, or open the undamaged parts by a repair</source>
        <translation>eine Sicherung oder eine automatische Speicherung verwenden, oder die unbeschädigten Teile durch eine Reparatur öffnen</translation>
    </message>
    <message>
        <source>{} is being written by {}</source>
        <translation>{} wird gerade von {} geschrieben</translation>
    </message>
    <message>
        <source>{} runs no static inputs of 8 bits</source>
        <translation>{} führt keine statischen Eingaben mit 8 Bits aus</translation>
    </message>
    <message>
        <source>leave inputs as they are (--inputs), or give int8-token</source>
        <translation>die Eingaben lassen, wie sie sind (--inputs), oder int8-token angeben</translation>
    </message>
    <message>
        <source>did you mean &apos;*{}*&apos;?</source>
        <translation>war &apos;*{}*&apos; gemeint?</translation>
    </message>
    <message>
        <source>calibrating {} needs data: give a text file, a table (.jsonl, .csv, .parquet), a folder of images or sounds, or an array file (.npz, .npy)</source>
        <translation>{} zu kalibrieren, braucht Daten: eine Textdatei, eine Tabelle (.jsonl, .csv, .parquet), einen Ordner mit Bildern oder Tönen oder eine Datei mit Arrays (.npz, .npy) angeben</translation>
    </message>
    <message>
        <source>evaluating {} needs data: calibrate first, or give a text file, a table (.jsonl, .csv, .parquet), a folder of images or sounds, or an array file (.npz, .npy)</source>
        <translation>{} auszuwerten, braucht Daten: erst kalibrieren, oder eine Textdatei, eine Tabelle (.jsonl, .csv, .parquet), einen Ordner mit Bildern oder Tönen oder eine Datei mit Arrays (.npz, .npy) angeben</translation>
    </message>
    <message>
        <source>{} holds nothing that is read; expected {w}</source>
        <translation>{} enthält nichts, das gelesen wird; erwartet wurde {w}</translation>
    </message>
    <message>
        <source>{} holds pictures in the folders of {}; give one of these</source>
        <translation>{} enthält Bilder in den Ordnern von {}; einen davon angeben</translation>
    </message>
    <message>
        <source>{} holds {}; {w}; give a part of it</source>
        <translation>{} enthält {}; {w}; einen Teil davon angeben</translation>
    </message>
    <message>
        <source>a file</source>
        <translation>eine Datei</translation>
    </message>
    <message>
        <source>{} holds no sample for its {} half</source>
        <translation>{} enthält kein Beispiel für die Hälfte {}</translation>
    </message>
    <message>
        <source>the constant {} cannot be read: {} does not fit: {w}</source>
        <translation>die Konstante {} kann nicht gelesen werden: {} passt nicht: {w}</translation>
    </message>
    <message>
        <source>{} does not exist; if {} is a model of the Hugging Face Hub, fetch it first: hf download {}; expected {w}</source>
        <translation>{} existiert nicht; wenn {} ein Modell des Hugging Face Hub ist, es erst holen: hf download {}; erwartet wurde {w}</translation>
    </message>
    <message>
        <source>{} cannot be rotated: {} runs several times</source>
        <translation>{} kann nicht gedreht werden: {} läuft mehrmals</translation>
    </message>
    <message>
        <source>{} does not exist there; share the folder, or put the model into the folder that {} names, as {}</source>
        <translation>{} existiert dort nicht; den Ordner freigeben, oder das Modell in den Ordner legen, den {} nennt, als {}</translation>
    </message>
    <message>
        <source>or remove {} if it has ended</source>
        <translation>oder {} entfernen, wenn es beendet ist</translation>
    </message>
    <message>
        <source>no further message</source>
        <translation>keine weitere Meldung</translation>
    </message>
    <message>
        <source>top level</source>
        <translation>oberste Ebene</translation>
    </message>
    <message>
        <source>it runs no convolution or linear layer</source>
        <translation>es führt keine Faltung oder lineare Schicht aus</translation>
    </message>
    <message>
        <source>{}: the constant {} cannot be read: {} does not fit: {w}</source>
        <translation>{}: die Konstante {} kann nicht gelesen werden: {} passt nicht: {w}</translation>
    </message>
    <message>
        <source>name it (--column {},TEXT)</source>
        <translation>sie nennen (--column {},TEXT)</translation>
    </message>
    <message>
        <source>name the column of texts (--column)</source>
        <translation>die Spalte mit Texten nennen (--column)</translation>
    </message>
    <message>
        <source>columns of numbers and of texts cannot be mixed (--column)</source>
        <translation>Spalten mit Zahlen und mit Texten lassen sich nicht mischen (--column)</translation>
    </message>
    <message>
        <source>name the column of files (--column)</source>
        <translation>die Spalte mit Dateien nennen (--column)</translation>
    </message>
    <message>
        <source>say how many points a sample has (--window N)</source>
        <translation>angeben, wie viele Punkte ein Beispiel hat (--window N)</translation>
    </message>
    <message>
        <source>the longest has {} (--window N)</source>
        <translation>der längste hat {} (--window N)</translation>
    </message>
    <message>
        <source>name columns that all shards have (--column)</source>
        <translation>Spalten nennen, die alle Teile haben (--column)</translation>
    </message>
    <message>
        <source>its columns are {} (--column)</source>
        <translation>seine Spalten sind {} (--column)</translation>
    </message>
    <message>
        <source>{}: a {w} of row {} is {}; expected its bytes, or a path beside the table (nothing is downloaded)</source>
        <translation>{}: {w} von Zeile {} ist {}; erwartet wurden die Bytes oder ein Pfad neben der Tabelle (nichts wird heruntergeladen)</translation>
    </message>
    <message>
        <source>sound</source>
        <translation>Ton</translation>
    </message>
    <message>
        <source>picture</source>
        <translation>Bild</translation>
    </message>
    <message>
        <source>{} is damaged, or holds what its reader does not expect; if other programs open it, please report that ({})</source>
        <translation>{} ist beschädigt, oder enthält, was ihr Leser nicht erwartet; wenn andere Programme sie öffnen, das bitte melden ({})</translation>
    </message>
    <message>
        <source>uncaught exception</source>
        <translation>nicht abgefangene Ausnahme</translation>
    </message>
    <message>
        <source>{} makes the library that reads it end</source>
        <translation>{} lässt die Bibliothek enden, die es liest</translation>
    </message>
    <message>
        <source>the architecture {} cannot be written as GGUF yet</source>
        <translation>die Architektur {} kann noch nicht als GGUF geschrieben werden</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s {} computes no network with {}</source>
        <translation>{} von llama.cpp rechnet kein Netz mit {}</translation>
    </message>
    <message>
        <source>{} has a head for another answer than embeddings, and llama.cpp's {} has none</source>
        <translation>{} hat einen Kopf für eine andere Antwort als Einbettungen, und {} in llama.cpp hat keinen</translation>
    </message>
    <message>
        <source>{} has a head for another answer than the next token, and llama.cpp's {} has none</source>
        <translation>{} hat einen Kopf für eine andere Antwort als das nächste Token, und {} in llama.cpp hat keinen</translation>
    </message>
    <message>
        <source>{} has a head for another answer than the next token, and mlx-lm's {} has none</source>
        <translation>{} hat einen Kopf für eine andere Antwort als das nächste Token, und {} in mlx-lm hat keinen</translation>
    </message>
    <message>
        <source>the header of {} does not read back as it was written</source>
        <translation>der Kopf von {} liest sich nicht zurück, wie er geschrieben wurde</translation>
    </message>
    <message>
        <source>{} of the file reads back otherwise than it was written</source>
        <translation>{} in der Datei liest sich anders zurück, als es geschrieben wurde</translation>
    </message>
    <message>
        <source>it cannot be written as GGUF</source>
        <translation>es lässt sich nicht als GGUF schreiben</translation>
    </message>
    <message>
        <source>the network&apos;s activation is {}, llama.cpp&apos;s {} computes {}</source>
        <translation>die Aktivierung des Netzes ist {}, in llama.cpp rechnet {} mit {}</translation>
    </message>
    <message>
        <source>llama.cpp takes the long rotary factors for every text where its context has more than {} tokens, transformers for texts that have more</source>
        <translation>llama.cpp nimmt die langen Faktoren der Rotary Embeddings für jeden Text, wenn sein Kontext mehr als {} Token hat, transformers für Texte, die mehr haben</translation>
    </message>
    <message>
        <source>{}, which {} names, is missing: it says how tokens are pooled; fetch it</source>
        <translation>{}, das {} nennt, fehlt: dort steht, wie Token zusammengefasst werden; die Datei laden</translation>
    </message>
    <message>
        <source>positions begin in the row after pad_token_id ({}) of {}; it cannot be written as GGUF</source>
        <translation>die Positionen beginnen in der Zeile nach pad_token_id ({}) von {}; das lässt sich nicht als GGUF schreiben</translation>
    </message>
    <message>
        <source>{} pools by {}; llama.cpp takes the mean, the first or the last token, so it cannot be written as GGUF</source>
        <translation>{} fasst durch {} zusammen; llama.cpp nimmt das Mittel, das erste oder das letzte Token, daher lässt es sich nicht als GGUF schreiben</translation>
    </message>
    <message>
        <source>the tokenizer in {} has no tokenizer.json, and transformers makes none of it</source>
        <translation>der Tokenizer in {} hat keine tokenizer.json, und transformers macht keine daraus</translation>
    </message>
    <message>
        <source>its architecture has no place for {}</source>
        <translation>ihre Architektur hat keinen Platz für {}</translation>
    </message>
    <message>
        <source>it scales rotary embeddings (rope.scaling.attn_factor), which this network does not</source>
        <translation>sie skaliert Rotary Embeddings (rope.scaling.attn_factor), was dieses Netz nicht tut</translation>
    </message>
    <message>
        <source>its header is cut short or garbled ({w})</source>
        <translation>ihr Kopf ist abgeschnitten oder entstellt ({w})</translation>
    </message>
    <message>
        <source>it says that it has {} {w}, {} bytes are left</source>
        <translation>sie nennt {} {w}, übrig sind {} Bytes</translation>
    </message>
    <message>
        <source>it has {} {w}, and {} are the most of everything</source>
        <translation>sie hat {} {w}, und {} ist das Höchste von allem</translation>
    </message>
    <message>
        <source>it has the key {} twice</source>
        <translation>sie hat den Schlüssel {} zweimal</translation>
    </message>
    <message>
        <source>its alignment is {}, a power of two was expected</source>
        <translation>ihre Ausrichtung ist {}, erwartet wurde eine Zweierpotenz</translation>
    </message>
    <message>
        <source>it has the tensor {} twice</source>
        <translation>sie hat den Tensor {} zweimal</translation>
    </message>
    <message>
        <source>{} has the unknown type {}</source>
        <translation>{} hat den unbekannten Typ {}</translation>
    </message>
    <message>
        <source>the tensor {} has {} axes, {} is the most</source>
        <translation>der Tensor {} hat {} Achsen, höchstens {} sind möglich</translation>
    </message>
    <message>
        <source>the tensor {} has rows of {}, {} stores blocks of {}</source>
        <translation>der Tensor {} hat Zeilen von {}, {} speichert Blöcke von {}</translation>
    </message>
    <message>
        <source>llama.cpp has no name for how the tokenizer splits text ({w})</source>
        <translation>llama.cpp hat keinen Namen dafür, wie der Tokenizer Text teilt ({w})</translation>
    </message>
    <message>
        <source>if you know the one it goes by there, export with it (--set pre_tokenizer=NAME)</source>
        <translation>wenn der Name dort bekannt ist, mit ihm exportieren (--set pre_tokenizer=NAME)</translation>
    </message>
    <message>
        <source>the tokenizer is a {}, which llama.cpp does not have</source>
        <translation>der Tokenizer ist ein {}, den llama.cpp nicht hat</translation>
    </message>
    <message>
        <source>BPE, Unigram and WordPiece can be written</source>
        <translation>BPE, Unigram und WordPiece können geschrieben werden</translation>
    </message>
    <message>
        <source>{} is not a tokenizer: an object with a model was expected</source>
        <translation>{} ist kein Tokenizer: erwartet wurde ein Objekt mit einem Modell</translation>
    </message>
    <message>
        <source>the token {} has the id {}, the embedding has {} rows</source>
        <translation>das Token {} hat die ID {}, die Einbettung hat {} Zeilen</translation>
    </message>
    <message>
        <source>ScatterND that adds up</source>
        <translation>ScatterND, das addiert</translation>
    </message>
    <message>
        <source>GatherND by sample</source>
        <translation>GatherND je Beispiel</translation>
    </message>
    <message>
        <source>an exclusive or reverse CumSum</source>
        <translation>ein ausschließendes oder umgekehrtes CumSum</translation>
    </message>
    <message>
        <source>DepthToSpace in the order DCR</source>
        <translation>DepthToSpace in der Reihenfolge DCR</translation>
    </message>
    <message>
        <source>an LSTM with peepholes</source>
        <translation>ein LSTM mit Peepholes</translation>
    </message>
    <message>
        <source>a GRU with linear_before_reset = 0</source>
        <translation>ein GRU mit linear_before_reset = 0</translation>
    </message>
    <message>
        <source>a recurrent layer over no steps</source>
        <translation>eine rekurrente Schicht über keine Schritte</translation>
    </message>
    <message>
        <source>a recurrent layer with other functions or another layout</source>
        <translation>eine rekurrente Schicht mit anderen Funktionen oder anderer Anordnung</translation>
    </message>
    <message>
        <source>pooling with a second output of indices</source>
        <translation>Pooling mit einer zweiten Ausgabe von Indizes</translation>
    </message>
    <message>
        <source>a transposed convolution with auto_pad or output_shape</source>
        <translation>eine transponierte Faltung mit auto_pad oder output_shape</translation>
    </message>
    <message>
        <source>Resize of samples or channels, or with antialias</source>
        <translation>Resize von Beispielen oder Kanälen, oder mit antialias</translation>
    </message>
    <message>
        <source>it changes {}</source>
        <translation>es ändert {}</translation>
    </message>
    <message>
        <source>it has the operation {}</source>
        <translation>es hat die Operation {}</translation>
    </message>
    <message>
        <source>it names {}</source>
        <translation>es nennt {}</translation>
    </message>
    <message>
        <source>it calls something that is not a name</source>
        <translation>es ruft etwas auf, das kein Name ist</translation>
    </message>
    <message>
        <source>it stores something that is not numbers</source>
        <translation>es speichert etwas, das keine Zahlen sind</translation>
    </message>
    <message>
        <source>it calls {}</source>
        <translation>es ruft {} auf</translation>
    </message>
    <message>
        <source>it has members of the same name</source>
        <translation>es hat Teile gleichen Namens</translation>
    </message>
    <message>
        <source>it has the member {}</source>
        <translation>es hat den Teil {}</translation>
    </message>
    <message>
        <source>its member {} is compressed</source>
        <translation>sein Teil {} ist komprimiert</translation>
    </message>
    <message>
        <source>its member {} has {} bytes</source>
        <translation>sein Teil {} hat {} Bytes</translation>
    </message>
    <message>
        <source>its members overlap</source>
        <translation>seine Teile überlappen</translation>
    </message>
    <message>
        <source>its sample inputs are compressed</source>
        <translation>seine Beispieleingaben sind komprimiert</translation>
    </message>
    <message>
        <source>its sample inputs are pickled objects</source>
        <translation>seine Beispieleingaben sind Objekte als Pickle</translation>
    </message>
    <message>
        <source>its tensors take {} bytes of {} in the file</source>
        <translation>seine Tensoren brauchen {} Bytes von {} in der Datei</translation>
    </message>
    <message>
        <source>the tensor or object {} is pickled</source>
        <translation>der Tensor oder das Objekt {} ist ein Pickle</translation>
    </message>
    <message>
        <source>it names something {}</source>
        <translation>es nennt etwas: {}</translation>
    </message>
    <message>
        <source>its graph nests deeper than {} levels</source>
        <translation>sein Graph ist tiefer als {} Ebenen verschachtelt</translation>
    </message>
    <message>
        <source>it holds a number of {} bits</source>
        <translation>es enthält eine Zahl von {} Bits</translation>
    </message>
    <message>
        <source>it names modules {}</source>
        <translation>es nennt Module: {}</translation>
    </message>
    <message>
        <source>its inputs or outputs nest deeper than {} levels</source>
        <translation>seine Ein- oder Ausgaben sind tiefer als {} Ebenen verschachtelt</translation>
    </message>
    <message>
        <source>its inputs or outputs are containers that import a module</source>
        <translation>seine Ein- oder Ausgaben sind Container, die ein Modul importieren</translation>
    </message>
    <message>
        <source>{} holds no tensor {} any more</source>
        <translation>{} enthält keinen Tensor {} mehr</translation>
    </message>
    <message>
        <source>it was changed while it was open</source>
        <translation>die Datei wurde geändert, während sie offen war</translation>
    </message>
    <message>
        <source>the file holds no tensors</source>
        <translation>die Datei enthält keine Tensoren</translation>
    </message>
    <message>
        <source>{} holds no tensors</source>
        <translation>{} enthält keine Tensoren</translation>
    </message>
    <message>
        <source>{} holds no tensor {}</source>
        <translation>{} enthält keinen Tensor {}</translation>
    </message>
    <message>
        <source>no {} is called {}; the closest are {} (expected: {})</source>
        <translation>kein {} heißt {}; am nächsten kommen {} (erwartet: {})</translation>
    </message>
    <message>
        <source>no {} is called {} (expected: {})</source>
        <translation>kein {} heißt {} (erwartet: {})</translation>
    </message>
    <message>
        <source>no {} is called {} (expected: one of {} names)</source>
        <translation>kein {} heißt {} (erwartet: einer von {} Namen)</translation>
    </message>
    <message>
        <source>no {} is called {}; the closest are {} (expected: one of {} names)</source>
        <translation>kein {} heißt {}; am nächsten kommen {} (erwartet: einer von {} Namen)</translation>
    </message>
    <message>
        <source>no {} is called {}</source>
        <translation>kein {} heißt {}</translation>
    </message>
    <message>
        <source>its groups nest deeper than {} levels</source>
        <translation>die Gruppen sind tiefer als {} Ebenen verschachtelt</translation>
    </message>
    <message>
        <source>it holds more than {} parts</source>
        <translation>die Datei enthält mehr als {} Teile</translation>
    </message>
    <message>
        <source>{} is a second name of another part, which a session never has</source>
        <translation>{} ist ein zweiter Name eines anderen Teils, den eine Sitzung nie hat</translation>
    </message>
    <message>
        <source>{}/{} is a link to another place, which a session never has</source>
        <translation>{}/{} ist ein Link an einen anderen Ort, den eine Sitzung nie hat</translation>
    </message>
    <message>
        <source>{} is neither a group nor an array</source>
        <translation>{} ist weder eine Gruppe noch ein Array</translation>
    </message>
    <message>
        <source>{} lies in another file</source>
        <translation>{} liegt in einer anderen Datei</translation>
    </message>
    <message>
        <source>{} needs the filter {}, which sessions do not use</source>
        <translation>{} braucht den Filter {}, den Sitzungen nicht verwenden</translation>
    </message>
    <message>
        <source>{} has the shape {} but holds hardly any data</source>
        <translation>{} hat die Form {}, enthält aber kaum Daten</translation>
    </message>
    <message>
        <source>{} makes it larger than the {} GB that are free</source>
        <translation>mit {} ist die Datei größer als die {} GB, die frei sind</translation>
    </message>
    <message>
        <source>it puts a space before the text</source>
        <translation>er setzt ein Leerzeichen vor den Text</translation>
    </message>
    <message>
        <source>its steps are {}</source>
        <translation>seine Schritte sind {}</translation>
    </message>
    <message>
        <source>a convolution</source>
        <translation>eine Faltung</translation>
    </message>
    <message>
        <source>the {w} is {n} tokens; at least 1 is needed</source>
        <translation>{w}: {n} Token; mindestens 1 ist nötig</translation>
    </message>
    <message>
        <source>{} cannot be unpacked as {}: {}</source>
        <translation>{} lässt sich nicht als {} entpacken: {}</translation>
    </message>
    <message>
        <source>set by hand</source>
        <translation>von Hand gesetzt</translation>
    </message>
    <message>
        <source>[Errno {n}] {w}</source>
        <translation>[Errno {n}] {w}</translation>
    </message>
    <message>
        <source>No such file or directory</source>
        <translation>Datei oder Ordner nicht gefunden</translation>
    </message>
    <message>
        <source>Operation not permitted</source>
        <translation>Vorgang nicht erlaubt</translation>
    </message>
    <message>
        <source>No space left on device</source>
        <translation>kein Platz mehr auf der Platte</translation>
    </message>
    <message>
        <source>Disk quota exceeded</source>
        <translation>Speicherkontingent überschritten</translation>
    </message>
    <message>
        <source>Is a directory</source>
        <translation>ist ein Ordner</translation>
    </message>
    <message>
        <source>Not a directory</source>
        <translation>kein Ordner</translation>
    </message>
    <message>
        <source>Directory not empty</source>
        <translation>Ordner nicht leer</translation>
    </message>
    <message>
        <source>File exists</source>
        <translation>Datei existiert schon</translation>
    </message>
    <message>
        <source>File name too long</source>
        <translation>Dateiname zu lang</translation>
    </message>
    <message>
        <source>File too large</source>
        <translation>Datei zu groß</translation>
    </message>
    <message>
        <source>Input/output error</source>
        <translation>Ein-/Ausgabefehler</translation>
    </message>
    <message>
        <source>Too many open files</source>
        <translation>zu viele offene Dateien</translation>
    </message>
    <message>
        <source>Device or resource busy</source>
        <translation>Gerät oder Ressource belegt</translation>
    </message>
    <message>
        <source>Stale file handle</source>
        <translation>Datei auf dem Netzlaufwerk nicht mehr gültig</translation>
    </message>
    <message>
        <source>Cannot allocate memory</source>
        <translation>Speicher kann nicht belegt werden</translation>
    </message>
    <message>
        <source>Broken pipe</source>
        <translation>Verbindung abgebrochen</translation>
    </message>
    <message>
        <source>Connection refused</source>
        <translation>Verbindung abgelehnt</translation>
    </message>
    <message>
        <source>Connection reset by peer</source>
        <translation>Verbindung von der Gegenseite getrennt</translation>
    </message>
    <message>
        <source>Connection timed out</source>
        <translation>Zeitüberschreitung der Verbindung</translation>
    </message>
    <message>
        <source>Network is unreachable</source>
        <translation>Netzwerk nicht erreichbar</translation>
    </message>
    <message>
        <source>No route to host</source>
        <translation>kein Weg zum Rechner</translation>
    </message>
    <message>
        <source>Invalid argument</source>
        <translation>ungültiges Argument</translation>
    </message>
    <message>
        <source>Expecting value</source>
        <translation>Wert erwartet</translation>
    </message>
    <message>
        <source>Extra data</source>
        <translation>überzählige Daten</translation>
    </message>
    <message>
        <source>Expecting property name enclosed in double quotes</source>
        <translation>Name in doppelten Anführungszeichen erwartet</translation>
    </message>
    <message>
        <source>Expecting &apos;,&apos; delimiter</source>
        <translation>Trennzeichen &apos;,&apos; erwartet</translation>
    </message>
    <message>
        <source>Expecting &apos;:&apos; delimiter</source>
        <translation>Trennzeichen &apos;:&apos; erwartet</translation>
    </message>
    <message>
        <source>Unterminated string starting at</source>
        <translation>Text ohne Ende ab</translation>
    </message>
    <message>
        <source>Invalid control character at</source>
        <translation>ungültiges Steuerzeichen bei</translation>
    </message>
    <message>
        <source>Invalid \escape</source>
        <translation>ungültiger \escape</translation>
    </message>
    <message>
        <source>line {n} column {n} (char {n})</source>
        <translation>Zeile {n}, Spalte {n} (Zeichen {n})</translation>
    </message>
    <message>
        <source>could not convert string to float</source>
        <translation>keine Zahl</translation>
    </message>
    <message>
        <source>invalid literal for int() with base {n}</source>
        <translation>keine ganze Zahl zur Basis {n}</translation>
    </message>
    <message>
        <source>&apos;{}&apos; codec can&apos;t decode byte {} in position {n}</source>
        <translation>{}: das Byte {} an der Stelle {n} ist kein Text</translation>
    </message>
    <message>
        <source>&apos;{}&apos; codec can&apos;t decode bytes in position {}</source>
        <translation>{}: die Bytes an den Stellen {} sind kein Text</translation>
    </message>
    <message>
        <source>invalid start byte</source>
        <translation>ungültiges erstes Byte</translation>
    </message>
    <message>
        <source>invalid continuation byte</source>
        <translation>ungültiges Folgebyte</translation>
    </message>
    <message>
        <source>unexpected end of data</source>
        <translation>unerwartetes Ende der Daten</translation>
    </message>
    <message>
        <source>the {} holds numbers from {n} to {n}</source>
        <translation>{} enthält Zahlen von {n} bis {n}</translation>
    </message>
    <message>
        <source>The demo is calibrated, scored, planned and evaluated now</source>
        <translation>Die Demo wird jetzt kalibriert, bewertet, geplant und ausgewertet</translation>
    </message>
    <message>
        <source>then a short tour begins</source>
        <translation>dann beginnt ein kurzer Rundgang</translation>
    </message>
    <message>
        <source>The tour has not begun</source>
        <translation>Der Rundgang hat nicht begonnen</translation>
    </message>
    <message>
        <source>it needs the demo's results: Help &gt; Tour of the Demo begins it</source>
        <translation>er braucht die Ergebnisse der Demo: Hilfe &gt; Rundgang durch die Demo beginnt ihn</translation>
    </message>
    <message>
        <source>Guide: {}</source>
        <translation>Handbuch: {}</translation>
    </message>
    <message>
        <source>Target: {}</source>
        <translation>Ziel: {}</translation>
    </message>
    <message>
        <source>Plan: {}</source>
        <translation>Plan: {}</translation>
    </message>
    <message>
        <source>Scheme: {}</source>
        <translation>Schema: {}</translation>
    </message>
    <message>
        <source>Layer: {}</source>
        <translation>Schicht: {}</translation>
    </message>
    <message>
        <source>Metric: {}</source>
        <translation>Maß: {}</translation>
    </message>
    <message>
        <source>Make this the target of the plan</source>
        <translation>Dies zum Ziel des Plans machen</translation>
    </message>
    <message>
        <source>It was not scored yet (F6)</source>
        <translation>Dies wurde noch nicht bewertet (F6)</translation>
    </message>
    <message>
        <source>its tensors take {n} bytes, it has {n}</source>
        <translation>ihre Tensoren nehmen {n} Bytes ein, sie hat {n}</translation>
    </message>
    <message>
        <source>{} was truncated while it was open</source>
        <translation>{} wurde gekürzt, während sie offen war</translation>
    </message>
    <message>
        <source>the engine starts</source>
        <translation>der Rechenprozess startet</translation>
    </message>
    <message>
        <source>Op&amp;tions</source>
        <translation>Op&amp;tionen</translation>
    </message>
    <message>
        <source>Mea&amp;sure…</source>
        <translation>&amp;Messen…</translation>
    </message>
    <message>
        <source>Repair</source>
        <translation>Reparieren</translation>
    </message>
    <message>
        <source>Repair for {w}</source>
        <translation>Reparieren für {w}</translation>
    </message>
    <message>
        <source>What was measured</source>
        <translation>Was gemessen wurde</translation>
    </message>
    <message>
        <source>Bytes of all tensors in this form; names, settings and the tokenizer come on top</source>
        <translation>Bytes aller Tensoren in dieser Form; Namen, Einstellungen und der Tokenizer kommen hinzu</translation>
    </message>
    <message>
        <source>the rest {}</source>
        <translation>der Rest {}</translation>
    </message>
    <message>
        <source>{}: loss {} {} (evaluated: {}), {} a second, {} of memory, file {}</source>
        <translation>{}: Verlust {} {} (ausgewertet: {}), {} je Sekunde, {} Arbeitsspeicher, Datei {}</translation>
    </message>
    <message>
        <source>&amp;Copy the Card</source>
        <translation>Karte &amp;kopieren</translation>
    </message>
</context>
</TS>
