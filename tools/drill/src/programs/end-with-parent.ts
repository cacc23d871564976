// Loaded before a program of the platform's: a drill that dies must not leave it behind.
process.once('disconnect', () => process.exit(3))
