// A log that adds fields to each line of another log, and whose level follows that log's level.
import type { Log } from '@bullpen/contract'
import type { Logger } from 'pino'

/**
 * Creates a log that adds `fields` to each line. The level of one of pino's own children is fixed when the child is created, so a change
 * would not reach an attempt that is already running. This log compares the levels at each line.
 */
export function childLog(parent: Logger, fields: object): Log {
  return new ChildLog(parent, fields)
}

class ChildLog implements Log {
  readonly #parent: Logger
  readonly #child: Logger

  constructor(parent: Logger, fields: object) {
    this.#parent = parent
    this.#child = parent.child(fields)
  }

  debug(fields: object, message: string): void {
    this.#current().debug(fields, message)
  }

  info(fields: object, message: string): void {
    this.#current().info(fields, message)
  }

  warn(fields: object, message: string): void {
    this.#current().warn(fields, message)
  }

  error(fields: object, message: string): void {
    this.#current().error(fields, message)
  }

  #current(): Logger {
    const { level } = this.#parent
    if (this.#child.level !== level) this.#child.level = level
    return this.#child
  }
}
