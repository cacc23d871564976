// Defines the exit codes, which scripts rely on, and the help texts that explain them.

export const EXIT = {
  success: 0,
  incomplete: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  bug: 70,
  unwritable: 74,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'success; with --wait or in watch, the task or run has completed, or the pools have ended',
  1: 'unfinished or only partly done; with --wait or in watch, the wait timed out, or the task or run ended without completing; doctor has found something',
  2: 'invalid arguments; nothing was changed',
  3: 'the API rejected the request; with doctor --bullmq, Redis did',
  4: 'no Bullpen API could be reached; with doctor --bullmq, no Redis',
  70: 'a bug in bullpen itself',
  74: 'standard output could not be written, for example because the disk is full; a closed pipe is not an error',
}
