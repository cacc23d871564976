// Tests that a handler stores the same values wherever it runs: in the worker's thread, in a thread, in a child process, and in quarantine.
import { createGroupId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import {
  createRegistry,
  envelopeText,
  type FetchedTask,
  InterruptibleRun,
  type RunnerHost,
  runAttempt,
} from '@bullpen/engine/internal'
import { sha256, systemClock } from '@bullpen/engine/node'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openIsolator } from './open-isolator.ts'
import { recordingLog } from './setup.fixture.ts'
import { catalogue, type Description, handlers, ODD_KINDS } from './values.fixture.ts'

const PLACES = ['inline', 'thread', 'process', 'quarantine'] as const
const ENQUEUED_AT = Date.now()
const WAYS = ['send', 'return', 'throw'] as const

const isolator = openIsolator({ threads: { max: 1 }, processes: { max: 2 }, log: recordingLog().log })
afterAll(() => isolator.close())

// Another test file of this process may have loaded vega-lite, which gives every Set a `toJSON`. Isolates do not have it.
const added = Object.getOwnPropertyDescriptor(Set.prototype, 'toJSON')
beforeAll(() => void Reflect.deleteProperty(Set.prototype, 'toJSON'))
afterAll(() => void (added && Object.defineProperty(Set.prototype, 'toJSON', added)))

const registry = createRegistry(catalogue, handlers as never, {
  isolator,
  quarantine: { isolator, fits: async () => true, memoryLimitBytes: 2 ** 30 },
})

/** Runs one attempt, and returns all that it stores and reports, as text. */
async function stored(
  place: (typeof PLACES)[number],
  input: unknown,
  envelope: object = {},
): Promise<readonly string[]> {
  const texts: string[] = []
  const note = (what: string, value: unknown): void => void texts.push(`${what} ${JSON.stringify(value)}`)
  const { log, lines } = recordingLog()
  const task = `values.${place === 'quarantine' ? 'inline' : place}`
  const host: RunnerHost = {
    registry,
    context: { run: (attempt, code) => code(attempt), current: () => undefined },
    clock: systemClock,
    random: () => 0.5,
    sink() {},
    queue: 'q',
    async enqueue(child) {
      texts.push(`child ${envelopeText(child)}`)
      return { id: child.id, action: 'created' }
    },
    sha256,
    maxOutputBytes: 100_000,
    worker: 'host:1',
    resources: {},
    logFor: () => log,
  }
  const fetched: FetchedTask = {
    id: createTaskId('q', 1, new Uint8Array(10)),
    task,
    envelope: { v: 2, version: 1, input, ...envelope },
    enqueuedAt: ENQUEUED_AT,
    fencingToken: 1,
    attempt: 1,
    maxAttempts: 1,
    readyAt: undefined,
    events: { about: { task: 'values', attempt: 1, fencingToken: 1 }, report: (body) => note('event', body) },
    progress: async (progress) => note('progress', progress),
    steps: {
      read: async () => new Map(),
      async keep(step, result) {
        texts.push(`step ${step} ${result}`)
        return result
      },
      async register(kind, identity, template) {
        texts.push(`${kind} ${identity} ${template}`)
        return 'stored'
      },
    },
    ...(place === 'quarantine' && { apart: 'process', quarantine: { deaths: 1, startAlone: async () => true } }),
  }
  const running = runAttempt(fetched, host)
  const { verdict, record, followUps } = await (running instanceof InterruptibleRun ? running.result : running)
  note('verdict', verdict)
  note('record', [record.state, record.reason, record.code, record.message])
  texts.push(`follow-ups ${followUps}`)
  // An error keeps its own fields if its line does not leave an isolate.
  for (const line of lines) note('line', [line.level, line.message, line['nested']])
  // A stack says where the handler ran.
  return texts.map((text) => text.replaceAll(task, 'values').replaceAll(/\\n +at .*?(?=\\n|")/g, ''))
}

async function expectSame(input: object): Promise<void> {
  const [inline, ...others] = await Promise.all(PLACES.map((place) => stored(place, input)))
  for (const other of others) expect(other).toEqual(inline)
}

const description = fc.letrec<{ value: Description }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 3, arbitrary: fc.constantFrom(...ODD_KINDS).map((kind): Description => ({ kind })) },
    { weight: 2, arbitrary: fc.jsonValue().map((value): Description => ({ kind: 'json', value })) },
    {
      weight: 2,
      arbitrary: fc.array(tie('value'), { maxLength: 4 }).map((items): Description => ({ kind: 'array', items })),
    },
    {
      weight: 4,
      arbitrary: fc
        .array(fc.tuple(fc.oneof(fc.string(), fc.constantFrom('a', 'toJSON', 'then', 'err', '1')), tie('value')), {
          maxLength: 4,
        })
        .map((fields): Description => ({ kind: 'object', fields })),
    },
  ),
})).value

describe.each(WAYS)('what a handler would %s', (way) => {
  it.each(ODD_KINDS)('is the same wherever it runs: %s', async (kind) => {
    await expectSame({ way, description: { kind } })
    await expectSame({ way, description: { kind: 'object', fields: [['in', { kind: 'array', items: [{ kind }] }]] } })
  })

  it('is the same wherever it runs, whatever it is', async () => {
    await fc.assert(
      fc.asyncProperty(description, (given) => expectSame({ way, description: given })),
      { numRuns: amount({ small: 40, full: 2_000 }) },
    )
  })
})

it.each([
  ['bigint', 'output.in.0: Do not know how to serialize a BigInt'],
  ['cycle', 'output.in.0.self.own: Converting circular structure to JSON'],
  ['throwing getter', 'output.in.0.a: read'],
  ['throwing toJSON', 'output.in.0: toJSON'],
  ['deep', 'output: nested more than 500 levels deep'],
  ['deeper than any stack', 'output: nested more than 500 levels deep'],
] as const)('an output that JSON cannot represent is refused with its path: %s', async (kind, message) => {
  const value: Description = { kind: 'object', fields: [['in', { kind: 'array', items: [{ kind }] }]] }
  const record = (await stored('process', { way: 'return', description: value })).find((text) =>
    text.startsWith('record'),
  )
  expect(record).toContain(`the output of values cannot be stored as JSON: ${message}`)
})

const [group, followed] = [createGroupId(1, new Uint8Array(10)), createTaskId('q', 2, new Uint8Array(10))]

it.each([
  ['a member of a group', { group: { id: group, member: 3 } }, { group: { id: group, member: 3 } }],
  ['the follow-up of a group', { followUpOf: group }, { group: { id: group }, followUpOf: group }],
  ['the follow-up of a task', { followUpOf: followed }, { followUpOf: followed }],
  ['any other task', { correlationId: 'c-1', meta: { a: 'b' } }, { correlationId: 'c-1', meta: { a: 'b' } }],
])('what a handler reads about its task is the same wherever it runs: %s', async (_, envelope, read) => {
  const about = {
    ...{ id: createTaskId('q', 1, new Uint8Array(10)), attempt: 1, fencingToken: 1, meta: {} },
    enqueuedAt: new Date(ENQUEUED_AT).toISOString(),
    ...read,
  }
  for (const place of PLACES) {
    const texts = await stored(place, { way: 'context' }, envelope)
    const verdict = texts.find((text) => text.startsWith('verdict '))?.slice('verdict '.length)
    expect(JSON.parse(verdict ?? ''), place).toEqual({ kind: 'completed', output: about })
  }
})
