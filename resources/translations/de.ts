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
        <source>Open a .safetensors, .pt2 or Python file</source>
        <translation>Eine .safetensors-, .pt2- oder Python-Datei öffnen</translation>
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
        <translation>E&amp;valuieren…</translation>
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
        <translation>Kalibrieren, bewerten, im Budget suchen und evaluieren: was noch nicht getan ist</translation>
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
        <source>Find any command, panel, layer, scheme, plan or word of the guide by its name</source>
        <translation>Befehle, Ansichten, Schichten, Schemata, Pläne oder Kapitel der Anleitung nach Namen finden</translation>
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
        <translation>&amp;Anleitung</translation>
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
        <translation>Evaluieren</translation>
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
</context>
</TS>
