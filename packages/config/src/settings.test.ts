// Tests where settings come from, and what the errors name.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { API_SETTINGS } from './api-settings.ts'
import { helpOf } from './help.ts'
import { durationOr, durationOrNone, wholeNumber, wholeNumberOr } from './setting-types.ts'
import { checkSettings, flagOf, originOf, readSettings, type SettingsSources, type SettingsTable } from './settings.ts'
import { WORKER_SETTINGS } from './worker-settings.ts'

const table = {
  redisUrl: {
    env: 'REDIS_URL',
    schema: z.url().default('redis://127.0.0.1:6379'),
    expected: 'a URL',
    secret: true,
    help: 'The server.',
  },
  drainTimeout: { env: 'BULLPEN_WORKER_DRAIN_TIMEOUT', ...durationOr('20s'), help: 'How long to wait.' },
  port: { env: 'BULLPEN_WORKER_PORT', ...wholeNumberOr(9465, 0, 65_535), help: 'The port.' },
} as const

const noFile = (): string => {
  throw new Error('ENOENT: no such file')
}

function read(sources: Partial<SettingsSources>, rules: Parameters<typeof readSettings<typeof table>>[2] = []) {
  return readSettings('WORKER', table, rules, { argv: [], env: {}, readFile: noFile, ...sources })
}

const DEFAULTS = { redisUrl: 'redis://127.0.0.1:6379', drainTimeout: '20s', port: 9465 }

const failure = (message: string) => expect.objectContaining({ code: 'invalid_configuration', message })

describe('settings', () => {
  it('come from the flag, the environment, the file and the default, in that order of precedence', () => {
    const file = { readFile: () => '{"port": 1, "drainTimeout": "1s", "redisUrl": "redis://file"}' }
    const env = { BULLPEN_CONFIG: 'bullpen.json', BULLPEN_WORKER_PORT: '2', BULLPEN_WORKER_DRAIN_TIMEOUT: '2s' }
    expect(read({ ...file, env, argv: ['--port', '3'] })).toMatchObject({
      redisUrl: 'redis://file',
      drainTimeout: '2s',
      port: 3,
    })
    expect(read({})).toMatchObject(DEFAULTS)
  })

  it('are read from --flag value and --flag=value, and --config takes precedence over BULLPEN_CONFIG', () => {
    const readFile = (path: string): string => (path === 'flag.json' ? '{"port": 7}' : '{"port": 8}')
    expect(read({ argv: ['--config=flag.json'], env: { BULLPEN_CONFIG: 'env.json' }, readFile }).port).toBe(7)
    expect(read({ argv: ['--port', '3', '--drain-timeout=5s'] })).toMatchObject({ port: 3, drainTimeout: '5s' })
  })

  it('treat an empty variable as unset', () => {
    expect(read({ env: { BULLPEN_WORKER_PORT: '', BULLPEN_CONFIG: '' } }).port).toBe(9465)
  })

  it('ignore the variables of other programs', () => {
    expect(
      read({ env: { BULLPEN_API_PORT: '1', BULLPEN_API: 'x', BULLPEN_KEY: 'x', BULLPEN_BY: 'x', HOME: '/' } }).port,
    ).toBe(9465)
  })

  it('are checked against the rules across settings once each of them is valid', () => {
    const rule = ({ port }: { port: number }) => (port === 1 ? 'port 1 contradicts drainTimeout' : undefined)
    expect(() => read({ argv: ['--port', '1'] }, [rule])).toThrow(
      failure('invalid configuration: port 1 contradicts drainTimeout'),
    )
    expect(() => read({ argv: ['--port', '2'] }, [rule])).not.toThrow()
  })

  it('are frozen', () => {
    expect(Object.isFrozen(read({}))).toBe(true)
    expect(Object.isFrozen(checkSettings(table, [], { port: 1 }))).toBe(true)
  })

  it('have flags derived from their names', () => {
    expect(flagOf('drainTimeout')).toBe('--drain-timeout')
  })

  it('are listed by --help with flag, variable, meaning and default', () => {
    const help = helpOf('worker', table)
    expect(help).toContain('  --drain-timeout, BULLPEN_WORKER_DRAIN_TIMEOUT\n      How long to wait. Default: 20s.')
  })
})

describe('the error for', () => {
  it.each<[name: string, sources: Partial<SettingsSources>, fault: string]>([
    [
      'a misspelt variable names the nearest one',
      { env: { BULLPEN_WORKER_DRAIN_TIMEUOT: '5s' } },
      'BULLPEN_WORKER_DRAIN_TIMEUOT is not a setting; did you mean BULLPEN_WORKER_DRAIN_TIMEOUT?',
    ],
    [
      'a variable of a misspelt program names the nearest one',
      { env: { BULLPEN_WOKRER_PORT: '5' } },
      'BULLPEN_WOKRER_PORT is not a setting; did you mean BULLPEN_WORKER_PORT?',
    ],
    [
      'a misspelt flag names the nearest one',
      { argv: ['--drain-timout', '5s'] },
      '--drain-timout is not a setting; did you mean --drain-timeout?',
    ],
    [
      'a misspelt key of the file names the file and the nearest key',
      { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '{"prot": 1}' },
      'a.json: prot is not a setting; did you mean port?',
    ],
    ['a flag that is specified twice', { argv: ['--port', '1', '--port=2'] }, '--port is specified twice'],
    ['a flag without a value', { argv: ['--port'] }, '--port requires a value'],
    ['a flag that is followed by a flag', { argv: ['--port', '--drain-timeout=5s'] }, '--port requires a value'],
    ['an argument without a flag', { argv: ['9000'] }, 'unexpected argument "9000"; pass settings as --name value'],
    [
      'a variable names the variable, its value and what is accepted',
      { env: { BULLPEN_WORKER_PORT: 'eighty' } },
      'BULLPEN_WORKER_PORT is "eighty"; expected a whole number from 0 to 65535',
    ],
    [
      'a duration without a unit suggests one',
      { env: { BULLPEN_WORKER_DRAIN_TIMEOUT: '45' } },
      'BULLPEN_WORKER_DRAIN_TIMEOUT is "45"; expected a duration such as "45s"',
    ],
    ['a flag names the flag', { argv: ['--port=x'] }, '--port is "x"; expected a whole number from 0 to 65535'],
    [
      'a value of the file names its key and the file',
      { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '{"port": -1}' },
      'port in a.json is -1; expected a whole number from 0 to 65535',
    ],
    ['a secret never repeats it', { env: { REDIS_URL: 'hunter2' } }, 'REDIS_URL is not valid; expected a URL'],
    [
      'a file that can’t be read',
      { env: { BULLPEN_CONFIG: 'a.json' } },
      'cannot read the file a.json: ENOENT: no such file',
    ],
    [
      'a file that is not JSON never repeats its content, which may be a secret',
      { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '{\n  "port": 1,\n  "redisUrl": redis://:hunter2@host\n}' },
      'the file a.json is not valid JSON: see line 3, column 15; expected a JSON object whose keys are the names of settings',
    ],
    [
      'an argument after a flag never repeats it, because it may be the rest of a secret',
      { argv: ['--redis-url', 'redis://a,', 'redis://:hunter2@b'] },
      'unexpected argument after the value of --redis-url; pass settings as --name value, and quote a value that contains spaces',
    ],
    [
      'a file without an object',
      { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '[]' },
      'the file a.json does not contain a JSON object of settings',
    ],
  ])('%s', (_, sources, fault) => {
    expect(() => read(sources)).toThrow(failure(`invalid configuration: ${fault}`))
  })

  it('several faults lists all of them', () => {
    const env = { BULLPEN_WORKER_PORT: 'x', BULLPEN_WORKER_PROT: '1' }
    expect(() => read({ env })).toThrow(
      failure(
        [
          'invalid configuration:',
          '  - BULLPEN_WORKER_PROT is not a setting; did you mean BULLPEN_WORKER_PORT?',
          '  - BULLPEN_WORKER_PORT is "x"; expected a whole number from 0 to 65535',
        ].join('\n'),
      ),
    )
  })

  it('a value in code names the setting and its variable', () => {
    expect(() => checkSettings(table, [], { drainTimeout: '45' })).toThrow(
      failure(
        'invalid configuration: config.drainTimeout (BULLPEN_WORKER_DRAIN_TIMEOUT) is "45"; expected a duration such as "45s"',
      ),
    )
    expect(() => checkSettings(table, [], { prot: 1 } as object)).toThrow(
      failure('invalid configuration: config.prot is not a setting; did you mean port?'),
    )
  })
})

it.each([
  ['API', API_SETTINGS],
  ['WORKER', WORKER_SETTINGS],
] as const)(
  'every setting of the %s refuses ill-formed text, wherever it is given',
  (program, settings: SettingsTable) => {
    for (const name of Object.keys(settings)) {
      for (const value of ['\ud800', ['\ud800']]) {
        const fault = expect.objectContaining({ code: 'invalid_configuration', message: expect.stringContaining(name) })
        const file = JSON.stringify({ [name]: value })
        expect(() => checkSettings(settings, [], { [name]: value })).toThrow(
          expect.objectContaining({ code: 'invalid_configuration' }),
        )
        const sources = { argv: ['--config', 'a.json'], env: {}, readFile: () => file }
        expect(() => readSettings(program, settings, [], sources)).toThrow(fault)
      }
    }
  },
)

describe('the origin of a value', () => {
  it('is the flag, the variable or the file that it came from, and undefined for a default', () => {
    expect(originOf(read({ argv: ['--port=1'] }), 'port')).toBe('--port')
    expect(originOf(read({ env: { BULLPEN_WORKER_PORT: '1' } }), 'port')).toBe('BULLPEN_WORKER_PORT')
    const file = { env: { BULLPEN_CONFIG: 'a.json' }, readFile: () => '{"port": 1}' }
    expect(originOf(read(file), 'port')).toBe('port in a.json')
    expect(originOf(read({}), 'port')).toBeUndefined()
    expect(originOf({}, 'port')).toBeUndefined()
  })

  it('is the code for a value that a program sets itself, even next to values that it has read', () => {
    const settings = read({ env: { BULLPEN_WORKER_PORT: '1' } })
    expect(originOf({ port: 1 }, 'port')).toBe('config.port')
    expect(originOf({ ...settings, port: 2 }, 'port')).toBe('config.port')
    expect(originOf({ ...settings, drainTimeout: '1s' }, 'port')).toBe('BULLPEN_WORKER_PORT')
  })
})

describe('a whole number', () => {
  const { schema } = wholeNumber(0, 65_535)

  it.each([0, 80, '80', '65535'])('may be %j', (given) => {
    expect(schema.safeParse(given).data).toBe(Number(given))
  })

  it.each([' ', '', '0x10', '1e3', '1.5', 1.5, true, null, '-1', 65_536, '65536', [], Number.NaN])(
    'may not be %j, of which JavaScript might make a number',
    (given) => {
      expect(schema.safeParse(given).success).toBe(false)
    },
  )
})

describe('a duration', () => {
  it('has a unit and a shortest length', () => {
    const { schema, expected } = durationOr('1s', '500ms')
    expect(schema.safeParse('500ms').success).toBe(true)
    for (const wrong of ['499ms', '1', '', 'soon', 5]) expect(schema.safeParse(wrong).success).toBe(false)
    expect(expected('100ms')).toBe('a duration of at least "500ms" such as "30s"')
  })

  it('may be none for settings that allow no limit', () => {
    const { schema, expected } = durationOrNone('1s')
    expect(schema.safeParse('none').success).toBe(true)
    expect(expected('0')).toBe('a duration such as "30s", or "none"')
    expect(durationOr('1s').schema.safeParse('none').success).toBe(false)
  })
})
