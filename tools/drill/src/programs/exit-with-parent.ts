// This module is preloaded into a program, so that the program exits if the drill dies.
process.once('disconnect', () => process.exit(3))
