// Tests what the command line is read as, and what is told of a wrong one.
import { expect, test } from 'vitest'
import { readConnection } from '../connection.ts'
import { readCommandLine } from './arguments.ts'
import { countIn, durationIn, limitIn, metaIn, statusIn } from './option-values.ts'
import { UsageError } from './usage-error.ts'

const wrong = (message: string) =>
  expect.objectContaining({ name: 'UsageError', message: expect.stringContaining(message) })

test('options may stand before and after the command and its arguments', () => {
  const expected = { command: 'show', positionals: ['x'], values: { json: true, wait: '10s' } }
  expect(readCommandLine(['--json', 'show', 'x', '--wait', '10s'])).toMatchObject(expected)
  expect(readCommandLine(['--wait=10s', 'show', '--json', 'x'])).toMatchObject(expected)
  expect(readCommandLine(['enqueue', 'a.b', '-']).positionals).toEqual(['a.b', '-'])
  expect(readCommandLine(['enqueue', 'a.b', '--', '-1']).positionals).toEqual(['a.b', '-1'])
  expect(readCommandLine(['enqueue', 'a.b', '--meta', 'a=1', '--meta', 'b=2']).values.meta).toEqual(['a=1', 'b=2'])
})

test.each([
  [[], 'no command'],
  [['enque', 'a.b'], "there is no command 'enque'; did you mean enqueue?; the commands are enqueue, show"],
  [['redrive'], "there is no command 'redrive'"],
  [['stop', 'p/cpu/1', '--mode', 'hard'], 'stop takes no --mode; it takes --hard'],
  [['show', 'x', '--wiat', '1s'], 'there is no option --wiat; did you mean --wait?'],
  [['list', '--statsu=dead'], 'there is no option --statsu; did you mean --status?'],
  [['list', '--jsno'], 'there is no option --jsno; did you mean --json?'],
  [['enqueue', 'a.b', '-1'], 'there is no option -1; an argument that begins with - comes after --'],
  [['show', 'x', '--delay', '1s'], 'show takes no --delay; it takes --wait'],
  [['help', '--all'], 'help takes no --all'],
  [['show'], 'show needs ID'],
  [['show', 'x', 'y'], "'y' is too much: bullpen show ID"],
  [['list', 'cpu'], "'cpu' is too much"],
  [['cancel', 'x', ''], 'an argument of cancel is empty'],
  [['show', 'x', '--wait'], '--wait'],
  [['show', 'x', '--json=yes'], '--json'],
])('%j is refused', (argv, message) => {
  expect(() => readCommandLine(argv)).toThrow(wrong(message))
})

test('help and the version need nothing else', () => {
  expect(readCommandLine(['--help']).command).toBeUndefined()
  expect(readCommandLine(['show', '-h'])).toMatchObject({ command: 'show', values: { help: true } })
  expect(readCommandLine(['--version']).values.version).toBe(true)
})

test.each([
  [() => durationIn('--delay', '30'), '--delay is "30": a duration has a unit; did you mean \'30s\''],
  [() => durationIn('--wait', '31s', '30s'), "--wait is '31s': the longest is 30s"],
  [() => limitIn('--timeout', 'never'), '--timeout is "never"'],
  [() => metaIn(['a']), "--meta is 'a': it is KEY=VALUE"],
  [() => metaIn(['=a']), "--meta is '=a'"],
  [() => statusIn('daed'), "there is no status 'daed'; did you mean dead?; they are scheduled, "],
  [() => statusIn(undefined), '--status STATUS is missing'],
  [() => countIn('--limit', '0'), "--limit is '0': it is a whole number from 1 to 999999999"],
  [() => countIn('--limit', '1e3'), '--limit'],
])('a wrong value is told with what is right: %s', (read, message) => {
  expect(read).toThrow(wrong(message))
})

test('values are taken as they are written', () => {
  expect(durationIn('--wait', '30s', '30s')).toBe('30s')
  expect(limitIn('--timeout', 'none')).toBe('none')
  expect(metaIn(['a=b=c', 'd='])).toEqual({ a: 'b=c', d: '' })
})

test('the API and the key are options, then environment, then this machine', () => {
  const env = { BULLPEN_API: 'http://there', BULLPEN_KEY: 'k' }
  expect(readConnection({ api: 'https://other/x', key: 'o' }, env)).toEqual({ api: 'https://other/x', key: 'o' })
  expect(readConnection({}, env)).toEqual({ api: 'http://there', key: 'k' })
  expect(readConnection({}, { BULLPEN_API: '', BULLPEN_KEY: 'k' }).api).toBe('http://127.0.0.1:8080')
})

test.each([
  [{ key: 'secret' }, { BULLPEN_API: 'localhost:8080' }, "is 'localhost:8080'; it is an http or https URL"],
  [{ key: 'secret', api: 'http://me:secret@there' }, {}, 'holds a user or a password'],
  [{ key: 'secret\n' }, {}, 'the key holds a space, a line end'],
  [{}, { BULLPEN_KEY: '' }, 'there is no key: set BULLPEN_KEY'],
])('a wrong connection is told, and the key is not', (values, env, message) => {
  let told = ''
  try {
    readConnection(values, env)
  } catch (error) {
    told = error instanceof UsageError ? error.message : ''
  }
  expect(told).toContain(message)
  expect(told).not.toContain('secret')
})
