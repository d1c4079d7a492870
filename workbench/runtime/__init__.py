"""Background work, free of Qt: requests, jobs, the engine process, the tasks behind them, the one mutable document."""
