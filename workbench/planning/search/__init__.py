"""Budgets to plans: the convex hull, the knapsack, exchanges, the Pareto front."""
