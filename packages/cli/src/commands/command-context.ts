// What a command has at hand.
import type { Readable } from 'node:stream'
import type { Client } from '@bullpen/client'
import type { CommandLine } from '../arguments/arguments.ts'
import type { ExitCode } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'

export interface CommandContext {
  readonly positionals: CommandLine['positionals']
  readonly values: CommandLine['values']
  /** Throws where the address or the key is wrong: options are checked first. */
  readonly client: () => Client
  readonly out: Output
  /** Who asks, for the audit. */
  readonly by: string | undefined
  readonly stdin: Readable
  /** Tells of an error and goes on. @throws it when nobody foresaw it. */
  readonly tell: (error: unknown) => ExitCode
}
