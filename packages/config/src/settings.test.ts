import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkSettings, flagOf, readSettings, type SettingsSources, wholeNumber } from './settings.ts'

const table = {
  redisUrl: { env: 'REDIS_URL', schema: z.string().default('redis://127.0.0.1:6379'), help: '' },
  drainTimeout: { env: 'BULLPEN_WORKER_DRAIN_TIMEOUT', schema: z.string().default('20s'), help: '' },
  port: { env: 'BULLPEN_WORKER_PORT', schema: z.coerce.number('it is a number').int().default(9465), help: '' },
}

function read(sources: Partial<SettingsSources>, rules: Parameters<typeof readSettings<typeof table>>[2] = []) {
  const readFile = (): string => {
    throw new Error('there is no file')
  }
  return readSettings('WORKER', table, rules, { argv: [], env: {}, readFile, ...sources })
}

const failure = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid_configuration', message: expect.stringMatching(message) })

describe('settings', () => {
  it('come from the flag, else the environment, else the file, else the default', () => {
    const file = { readFile: () => '{"port": 1, "drainTimeout": "1s", "redisUrl": "redis://file"}' }
    const env = { BULLPEN_CONFIG: 'bullpen.json', BULLPEN_WORKER_PORT: '2', BULLPEN_WORKER_DRAIN_TIMEOUT: '2s' }
    expect(read({ ...file, env, argv: ['--port', '3'] })).toEqual({
      redisUrl: 'redis://file',
      drainTimeout: '2s',
      port: 3,
    })
    expect(read({})).toEqual({ redisUrl: 'redis://127.0.0.1:6379', drainTimeout: '20s', port: 9465 })
  })

  it('takes --flag=value, and --config before BULLPEN_CONFIG', () => {
    const readFile = (path: string): string => (path === 'flag.json' ? '{"port": 7}' : '{"port": 8}')
    expect(read({ argv: ['--config=flag.json'], env: { BULLPEN_CONFIG: 'env.json' }, readFile }).port).toBe(7)
  })

  it('takes an empty variable for unset', () => {
    expect(read({ env: { BULLPEN_WORKER_PORT: '' } }).port).toBe(9465)
  })

  it.each([
    [
      'a variable',
      { env: { BULLPEN_WORKER_DRAIN_TIMEUOT: '5s' } },
      /DRAIN_TIMEUOT is not a setting; did you mean BULLPEN_WORKER_DRAIN_TIMEOUT/,
    ],
    [
      'a variable of a misspelt app',
      { env: { BULLPEN_WOKRER_PORT: '5' } },
      /BULLPEN_WOKRER_PORT is not a setting; did you mean BULLPEN_WORKER_PORT/,
    ],
    ['a flag', { argv: ['--drain-timout', '5s'] }, /--drain-timout is not a setting; did you mean --drain-timeout/],
    [
      'a key of the file',
      { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '{"prot": 1}' },
      /a\.json: prot is not a setting; did you mean port/,
    ],
    ['a flag that is given twice', { argv: ['--port', '1', '--port=2'] }, /--port is given twice/],
    ['a flag without a value', { argv: ['--port'] }, /--port has no value/],
    [
      'a wrong value',
      { env: { BULLPEN_WORKER_PORT: 'eighty' } },
      /port \(BULLPEN_WORKER_PORT, --port\): it is a number/,
    ],
    [
      'a file that is not there',
      { env: { BULLPEN_CONFIG: 'a.json' } },
      /a\.json can't be read: Error: there is no file/,
    ],
    [
      'a file that is no object',
      { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '[]' },
      /does not hold a JSON object/,
    ],
  ])('refuses %s, naming it', (_, sources, message) => {
    expect(() => read(sources)).toThrow(failure(message))
  })

  it('leaves the variables of other apps alone', () => {
    expect(read({ env: { BULLPEN_API_PORT: '1', BULLPEN_KEY: 'x', HOME: '/' } }).port).toBe(9465)
  })

  it('names every fault at once', () => {
    expect(() => read({ env: { BULLPEN_WORKER_PORT: 'x', BULLPEN_WORKER_PROT: '1' } })).toThrow(
      failure(/PROT[\s\S]*BULLPEN_WORKER_PORT, --port/),
    )
  })

  it('checks rules across settings, once each of them is right', () => {
    const rule = ({ port }: { port: number }) => (port === 1 ? 'port 1 contradicts drainTimeout' : undefined)
    expect(() => read({ argv: ['--port', '1'] }, [rule])).toThrow(failure(/port 1 contradicts/))
    expect(() => read({ argv: ['--port', '2'] }, [rule])).not.toThrow()
  })

  it('checks what a program passes in the same way, and freezes it', () => {
    expect(() => checkSettings(table, [], { prot: 1 } as object)).toThrow(
      failure(/prot is not a setting; did you mean port/),
    )
    expect(Object.isFrozen(checkSettings(table, [], { port: 1 }))).toBe(true)
  })

  it('makes flags from names', () => {
    expect(flagOf('drainTimeout')).toBe('--drain-timeout')
  })

  it('takes whole numbers, and nothing that JavaScript would make one of', () => {
    const port = wholeNumber(0, 65_535)
    for (const right of [0, 80, '80', '65535']) expect(port.safeParse(right).data).toBe(Number(right))
    for (const wrong of [' ', '', '0x10', '1e3', '1.5', 1.5, true, null, '-1', 65_536, '65536', [], Number.NaN]) {
      expect(port.safeParse(wrong).error?.issues[0]?.message).toBe('it is a whole number from 0 to 65535')
    }
  })
})
