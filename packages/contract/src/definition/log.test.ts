// Tests the log that handlers receive.
import { expect, test } from 'vitest'
import { handlerLog, type Log } from './log.ts'

test('a handler logs a message alone, or fields and a message', () => {
  const lines: unknown[] = []
  const at = (level: keyof Log) => (fields: object, message: string) => void lines.push({ level, fields, message })
  const log = handlerLog({ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') })
  log.info('sending')
  log.warn({ to: 'ann' }, 'slow')
  log.debug('d')
  log.error({ code: 1 }, 'e')
  expect(lines).toEqual([
    { level: 'info', fields: {}, message: 'sending' },
    { level: 'warn', fields: { to: 'ann' }, message: 'slow' },
    { level: 'debug', fields: {}, message: 'd' },
    { level: 'error', fields: { code: 1 }, message: 'e' },
  ])
})
