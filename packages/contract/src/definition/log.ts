// Defines the interface that a logger must implement, and the log that a handler writes to.

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** A structured logger, such as pino. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Writes a message, or fields and a message. */
interface Write {
  (message: string): void
  (fields: object, message: string): void
}

/** A handler's log. Every line includes the task's id, name, fencing token and attempt. */
export interface HandlerLog {
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
}

/** Creates a handler's log that writes to `log`. */
export function handlerLog(log: Log): HandlerLog {
  const write = (level: keyof Log) => (first: string | object, message?: string) => {
    if (typeof first === 'string') log[level]({}, first)
    else log[level](first, message ?? '')
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}
