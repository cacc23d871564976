// What every command is given.
import type { Readable } from 'node:stream'
import type { Client } from '@bullpen/client'
import type { CommandLine } from '../arguments/command-line.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'

export interface CommandContext {
  readonly positionals: CommandLine['positionals']
  readonly values: CommandLine['values']
  /** Reads address and key. Called after the command's own options are checked. @throws UsageError. */
  readonly connect: () => Client
  readonly out: Output
  /** Who asks, for the audit log. */
  readonly by: string | undefined
  readonly stdin: Readable
  /** Whether {@link confirm} can ask: standard input is a terminal. */
  readonly isInteractive: boolean
  readonly confirm: (question: string) => Promise<boolean>
  /** Prints an error and returns its exit code, for commands that continue. @throws unexpected errors again. */
  readonly reportError: (error: unknown) => ExitCode
}
