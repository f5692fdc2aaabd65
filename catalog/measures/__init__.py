"""What tells how good a catalog looks: measures of what is stored, and of what is looked at anew.

Nothing that makes entries imports this package: gold evidence is read here.
"""
