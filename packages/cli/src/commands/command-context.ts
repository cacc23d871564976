// Defines the context that every command receives.
import type { Readable } from 'node:stream'
import type { Client } from '@bullpen/client'
import type { CommandLine } from '../arguments/command-line.ts'
import type { ConnectOptions } from '../connection.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import type { Screen } from '../output/screen.ts'

export interface CommandContext {
  readonly positionals: CommandLine['positionals']
  readonly values: CommandLine['values']
  /** Reads the API's address and key. Commands call it after checking their own options. @throws UsageError. */
  readonly connect: (options?: ConnectOptions) => Client
  readonly out: Output
  /** Takes over the terminal, until the screen is disposed of. Undefined if standard output is not a terminal that can be drawn on. */
  readonly openScreen: (() => Screen) | undefined
  /** The name of the person or program that sends the command, for the audit log. */
  readonly by: string | undefined
  readonly stdin: Readable
  /** True if standard input is a terminal, so that {@link confirm} can ask a question. */
  readonly isInteractive: boolean
  readonly confirm: (question: string) => Promise<boolean>
  /** Prints an error and returns its exit code, for commands that continue after an error. Rethrows an unexpected error. */
  readonly reportError: (error: unknown) => ExitCode
}
