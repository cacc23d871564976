// What the program's exit codes say, to scripts and in its help.

export const EXIT = { done: 0, otherwise: 1, usage: 2, refused: 3, unreachable: 4, bug: 70 } as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'done; with --wait: the task is completed, or the pools have ended',
  1: 'not done, not all of it, or not in time; or the task ended otherwise',
  2: 'wrong arguments; nothing was changed',
  3: 'the API refused',
  4: 'no Bullpen API could be reached',
  70: 'a bug in this program',
}
