// Tests that every field that a package's source logs is in the table of log fields. The test reads the sources, because most
// lines are written only in rare situations, such as the loss of a cluster node.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LOG_FIELDS } from './log-fields.ts'

const packages = join(import.meta.dirname, '../../..')

/** Calls that write a line, or that create a log all of whose lines contain the given fields. */
const CALL = /\b(?:log(?:ger)?(?:\??\.(?:debug|info|warn|error|child)|\[[^\]]+\])|logFor)\(/gi

/** Expressions whose fields are not named at the call, and the reason why their fields need no check there. */
const NOT_NAMED: Readonly<Record<string, string>> = {
  'fieldsOf(event)': 'its type is Partial<Record<LogField, unknown>>',
  'packages/contract/src/definition/log.ts first': 'a handler chooses the fields',
  'packages/engine/src/events/reporting-log.ts fields': 'a handler chooses the fields',
  'packages/bullmq/src/broker/broker.ts lost': 'it is a LostWorker, whose fields the table contains',
  'packages/engine/src/attempt/portable-fields.ts isPlain(fields) ? fields : joined(separate(fields))':
    'a handler chooses the fields',
  'packages/engine/src/redaction/redactor.ts value(fields) as object': 'a handler chooses the fields',
  'packages/bullmq/src/plain-processor.ts ...fields': 'they are the fields of logFor in packages/engine',
  'packages/bullmq/src/plain-processor.ts ...more': 'a handler chooses the fields',
  'packages/pipeline/src/tasks/task-caller.ts ...fields': 'they are the fields of logFor in packages/engine',
  'packages/pipeline/src/tasks/task-caller.ts ...own': 'a handler chooses the fields',
  'packages/sandbox/src/isolate/managed-isolate.ts fields': 'a handler chooses the fields',
  'packages/sandbox/src/isolate/managed-isolate.ts ...fields': 'the code that opens a resource chooses the fields',
  'packages/sandbox/src/isolate/managed-isolate.ts ...message.of':
    'it is an AttemptRef: id, task, fencingToken and attempt',
  'packages/sandbox/src/isolate/managed-isolate.ts ...of': 'it is an AttemptRef: id, task, fencingToken and attempt',
  'packages/worker/src/kept-built-ins.ts fields': 'the callers of the log choose the fields',
  'packages/worker/src/open-worker.ts warning': 'it is a message',
  'packages/worker/src/event-loop/stall-reporter-thread.ts ...sample?.attempt':
    'it is an AttemptInLoop: task, id, fencingToken and attempt',
  'packages/worker/src/drain-summary.ts ...about': 'it is { queue }, or empty',
}

/** Returns the names of all fields that a source logs, and the expressions whose fields it doesn't name. */
function fieldsIn(source: string): readonly string[] {
  return [...source.matchAll(CALL)].flatMap(({ index, 0: call }) => {
    const [first = ''] = partsUpToBracket(source.slice(index + call.length))
    return fieldsOf(first, source)
  })
}

function fieldsOf(expression: string, source: string): readonly string[] {
  if (/^['"`]/.test(expression)) return [] // the message of a handler's log
  if (expression.startsWith('{')) {
    return partsUpToBracket(expression.slice(1)).flatMap((part) => {
      const [, name] = /^(\w+)(?:$|:)/.exec(part) ?? []
      return name === undefined ? fieldsOf(part, source) : [name]
    })
  }
  const literals = [...expression.matchAll(/\{/g)].map(({ index }) => expression.slice(index))
  if (literals.length > 0) return literals.flatMap((literal) => fieldsOf(literal, source))
  const constant = new RegExp(String.raw`const ${expression.replace('...', '')}\b[^=\n]* = (?=\{)`).exec(source)
  return constant === null ? [expression] : fieldsOf(source.slice(constant.index + constant[0].length), source)
}

/** Splits the text before the bracket that closes it at its commas, except for those in inner brackets and strings. */
function partsUpToBracket(text: string): readonly string[] {
  const parts = ['']
  let depth = 0
  for (const [token] of text.matchAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|[\s\S]/g)) {
    if ('([{'.includes(token)) depth++
    if (')]}'.includes(token) && depth-- === 0) break
    if (token === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += token
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

describe('the test that reads the sources', () => {
  it.each([
    ["log.warn({ redis: address, node }, 'away')", ['redis', 'node']],
    ["this.#log.warn(\n  { err, delayMs: wait(1, { now }) },\n  'a, b')", ['err', 'delayMs']],
    ["const numbers = { failed: 1 }\nlog?.info({ ...numbers, queue }, 'drained')", ['failed', 'queue']],
    ["log[level]({ id, ...(a ? {} : { route }) }, 'answered')", ['id', 'route']],
    ["context.log.info('sending')", []],
    ["log.info(fields, 'hello')", ['fields']],
  ])('finds the fields of %j', (source, fields) => {
    expect(fieldsIn(source)).toEqual(fields)
  })
})

describe('a log field', () => {
  const sources = globSync('*/src/**/*.ts', { cwd: packages }).filter((file) => !/\.(test|fixture)\.ts$/.test(file))
  const logged = sources.flatMap((file) => {
    const path = join('packages', file)
    return fieldsIn(readFileSync(join(packages, file), 'utf8')).map((field) => ({ path, field }))
  })

  it('is in the table if a package logs it', () => {
    const isKnown = ({ path, field }: (typeof logged)[number]): boolean =>
      Object.hasOwn(LOG_FIELDS, field) ||
      Object.hasOwn(NOT_NAMED, field) ||
      Object.hasOwn(NOT_NAMED, `${path} ${field}`)
    expect(logged.filter((each) => !isKnown(each))).toEqual([])
  })

  it('is read by this test unless an exception says why not, and every exception is needed', () => {
    const used = new Set(logged.flatMap(({ path, field }) => [field, `${path} ${field}`]))
    expect(Object.keys(NOT_NAMED).filter((key) => !used.has(key))).toEqual([])
  })
})
