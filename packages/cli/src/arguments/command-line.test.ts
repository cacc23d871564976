// Tests how command lines are parsed, and the errors for invalid command lines.
import { expect, test } from 'vitest'
import { COMMAND_NAMES, commandOf } from '../commands/command-table.ts'
import { readConnection } from '../connection.ts'
import { parseCommandLine } from './command-line.ts'
import {
  parseChoice,
  parseCount,
  parseDuration,
  parseDurationWithin,
  parseLimit,
  parseMeta,
  parseStatus,
} from './option-values.ts'
import { COMMON_OPTIONS, OPTIONS } from './options.ts'
import { UsageError } from './usage-error.ts'

const usageError = (message: string | RegExp) =>
  expect.objectContaining({ name: 'UsageError', message: expect.stringMatching(message) })

test('options are accepted before and after the command and its arguments', () => {
  const expected = { command: 'show', positionals: ['x'], values: { json: true, wait: '10s' } }
  expect(parseCommandLine(['--json', 'show', 'x', '--wait', '10s'])).toMatchObject(expected)
  expect(parseCommandLine(['--wait=10s', 'show', '--json', 'x'])).toMatchObject(expected)
  expect(parseCommandLine(['enqueue', 'a.b', '-']).positionals).toEqual(['a.b', '-'])
  expect(parseCommandLine(['enqueue', 'a.b', '--', '-1']).positionals).toEqual(['a.b', '-1'])
  expect(parseCommandLine(['enqueue', 'a.b', '--meta', 'a=1', '--meta', 'b=2']).values.meta).toEqual(['a=1', 'b=2'])
})

test.each([
  [[], 'specify a command'],
  [['enque', 'a.b'], "unknown command 'enque'; did you mean enqueue?"],
  [['revive'], "unknown command 'revive'"],
  [['stop', 'w/cpu/1', '--mode', 'hard'], "'bullpen stop' does not accept --mode; expected --hard, --by"],
  [['show', 'x', '--wiat', '1s'], "unknown option '--wiat'; did you mean --wait?"],
  [['list', '--statsu=dead'], "unknown option '--statsu'; did you mean --status?"],
  [['list', '--jsno'], "unknown option '--jsno'; did you mean --json?"],
  [['enqueue', 'a.b', '-1'], "unknown option '-1'; put -- before an argument that begins with -"],
  [['show', 'x', '--delay', '1s'], "'bullpen show' does not accept --delay; expected --wait"],
  [['help', '--all'], "'bullpen help' does not accept --all"],
  [['show'], 'missing argument; expected bullpen show ID'],
  [['show', 'x', 'y'], "unexpected argument 'y'; expected bullpen show ID"],
  [['list', 'cpu'], "unexpected argument 'cpu'; expected bullpen list --queue QUEUE --status STATUS"],
  [['cancel', 'x', ''], 'an argument is empty'],
  [['enqueue', 'a.b', '--nope'], /^unknown option '--nope'$/],
  [['show', 'x', '--wait'], /^--wait requires a value: --wait DURATION$/],
  [['show', 'x', '--wait', '-1s'], '--wait requires a value: --wait DURATION; write --wait=VALUE if'],
  [['show', 'x', '--json=yes'], /^--json does not take a value$/],
  [['show', 'x', '--help=yes'], /^--help does not take a value$/],
  [['enqueue', 'a.b', '--priority', '1', '--priority', '2'], /^--priority is specified twice$/],
  [['--wait=1s', 'show', 'x', '--wait', '1s'], /^--wait is specified twice$/],
  [['show', 'x', '--key', 'a', '--key', 'b'], /^--key is specified twice$/],
])('%j is rejected', (argv, message) => {
  expect(() => parseCommandLine(argv)).toThrow(usageError(message))
})

test('every option that takes one value is refused if it is given twice, and every other one is accepted', () => {
  for (const [name, option] of Object.entries(OPTIONS)) {
    const takesOne = option.type === 'string' && !('multiple' in option)
    const command = COMMAND_NAMES.find((each) =>
      [...commandOf(each).options, ...COMMON_OPTIONS].some((own) => own === name),
    )
    const { min = 0 } = commandOf(command ?? 'show').arguments ?? {}
    const given = option.type === 'string' ? [`--${name}=a`, `--${name}=a`] : [`--${name}`, `--${name}`]
    const parse = () => parseCommandLine([command ?? '', ...Array.from({ length: min }, () => 'x'), ...given])
    if (takesOne) expect.soft(parse, name).toThrow(usageError(`--${name} is specified twice`))
    else expect.soft(parse, name).not.toThrow()
  }
})

test('--help and --version need no command and no arguments', () => {
  expect(parseCommandLine(['--help']).command).toBeUndefined()
  expect(parseCommandLine(['show', '-h'])).toMatchObject({ command: 'show', values: { help: true } })
  expect(parseCommandLine(['--version']).values.version).toBe(true)
})

test.each([
  ['a duration without a unit', () => parseDuration('--delay', '30'), '--delay is "30"'],
  [
    'a total timeout beyond the maximum',
    () => parseDurationWithin('--total-timeout', '999d', { min: '1s', max: '30d' }),
    `--total-timeout is "999d"; expected a duration from '1s' to '30d'`,
  ],
  ['a wait beyond the maximum', () => parseDuration('--wait', '31s', '30s'), "--wait is '31s'; the maximum is 30s"],
  ['a limit that is a word', () => parseLimit('--timeout', 'never'), '--timeout is "never"'],
  ['a label without =', () => parseMeta(['a']), "--meta is 'a'; expected KEY=VALUE"],
  [
    'a label that is given twice',
    () => parseMeta(['a=1', 'b=2', 'a=1']),
    "--meta names 'a' twice; expected each name once",
  ],
  ['a label without a key', () => parseMeta(['=a']), "--meta is '=a'"],
  ['an unknown status', () => parseStatus('daed'), "--status is 'daed'; expected one of scheduled, waiting"],
  ['an unknown choice', () => parseChoice('--mode', 'sotf', ['light', 'soft']), 'light, soft; did you mean soft?'],
  ['no status', () => parseStatus(undefined), 'missing option --status STATUS; expected one of scheduled'],
  ['a count of 0', () => parseCount('--limit', '0'), "--limit is '0'; expected a whole number from 1 to 999999999"],
  [
    'a count above the maximum',
    () => parseCount('--limit', '201', 200),
    "--limit is '201'; expected a whole number from 1 to 200",
  ],
  ['a count in another notation', () => parseCount('--limit', '1e3'), '--limit'],
])('%s is rejected with what is accepted', (_, parse, message) => {
  expect(parse).toThrow(usageError(message))
})

test('valid values are passed on as written', () => {
  expect(parseDuration('--wait', '30s', '30s')).toBe('30s')
  expect(parseLimit('--timeout', 'none')).toBe('none')
  expect(parseMeta(['a=b=c', 'd='])).toEqual({ a: 'b=c', d: '' })
})

test('API address and key come from options, then the environment, then the default', () => {
  const env = { BULLPEN_API: 'http://there', BULLPEN_KEY: 'k' }
  expect(readConnection({ api: 'https://other/x', key: 'o' }, env)).toEqual({ api: 'https://other/x', key: 'o' })
  expect(readConnection({}, env)).toEqual({ api: 'http://there', key: 'k' })
  expect(readConnection({}, { BULLPEN_API: '', BULLPEN_KEY: 'k' }).api).toBe('http://127.0.0.1:8080')
})

test.each([
  [{ key: 'secret' }, { BULLPEN_API: 'localhost:8080' }, "is 'localhost:8080'; expected an http or https URL"],
  [{ key: 'secret', api: 'http://me:secret@there' }, {}, 'contains a user name or password'],
  [{ key: 'secret' }, { BULLPEN_API: 'http://there/?key=secret' }, 'contains a query or a fragment'],
  [{ key: 'secret', api: 'http://there/x#secret' }, {}, 'contains a query or a fragment'],
  [{ key: 'secret\n' }, {}, 'the API key contains a space, a line break'],
  [{}, { BULLPEN_KEY: '' }, 'no API key; set BULLPEN_KEY'],
])('the error for an invalid connection never contains the key: %#', (values, env, message) => {
  let error: unknown
  try {
    readConnection(values, env)
  } catch (caught) {
    error = caught
  }
  expect(error).toBeInstanceOf(UsageError)
  expect((error as UsageError).message).toContain(message)
  expect((error as UsageError).message).not.toContain('secret')
})
