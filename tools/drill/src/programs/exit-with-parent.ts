// Preloaded into a program, so that it exits if the drill dies.
process.once('disconnect', () => process.exit(3))
