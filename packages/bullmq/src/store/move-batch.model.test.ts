// Moves that go out together leave and reply what the same moves do one by one, whatever they are.
import type { NewTask } from '@bullpen/engine'
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodeKind } from '../internals/status/stored-kind.ts'
import { capacitySetting, keyLimitSettings } from '../internals/turns/key-limits.ts'
import { setLimits } from '../internals/turns/set-limits.fixture.ts'
import { lockTask, unlockTasks } from '../locks/stored-lock.fixture.ts'
import type { AttemptEnd, ScriptEnd, ScriptVerdict } from './attempt-end.ts'
import { idOf, newOne, type QueueOfMoves, queueOfMoves, type ScriptMove } from './move-batch.fixture.ts'
import type { MoveReply } from './move-batch.ts'

const KINDS: readonly Partial<NewTask>[] = [
  {},
  { priority: 2 },
  { priority: 9 },
  { turn: { key: 'a', weight: 1 } },
  { turn: { key: 'b', weight: 3 } },
  { turn: { key: 'a', weight: 1 }, priority: 3 },
  { needs: [{ limiter: 'permits:db', amount: 2 }] },
  { turn: { key: 'b', weight: 1 }, needs: [{ limiter: 'permits:db', amount: 1 }] },
  { delayMs: 1_500 },
  { delayMs: 3_600_000, turn: { key: 'c', weight: 1 } },
]

type Spoil = 'none' | 'has no lock' | 'has another lock' | 'is gone' | 'is not active'

const SPOILS: Readonly<Record<Spoil, (queue: QueueOfMoves, id: string) => unknown>> = {
  none: () => {},
  'has no lock': ({ redis, keys }, id) => unlockTasks(redis, keys, id),
  'has another lock': ({ redis, keys }, id) => lockTask(redis, keys, id, 'another', 60_000),
  'is gone': ({ redis, keys }, id) => redis.del(keys.job(id)),
  'is not active': ({ redis, keys }, id) => redis.lrem(keys.active, 1, id),
}

type Field = readonly [name: string, value: string | number]

const MORE: Readonly<Record<'ended' | 'returned', readonly (readonly Field[])[]>> = {
  ended: [
    [],
    [['keepCount', '0']],
    [
      ['keepCount', 2],
      ['keepLimit', 5],
    ],
    [['keptCount', 1]],
    [['metrics', 5]],
    [['followUps', 's{"task":"x"}']],
    [['events', '100\n{"type":"ended"}']],
    [['budget', 'model.task 0.1 1000 none 0:3']],
  ],
  returned: [
    [],
    [['events', '100\n{"type":"retrying","at":']],
    [['budget', 'model.task 0.1 1000 none 0:1']],
    [['survival', 'died']],
  ],
}

const VERDICTS = {
  completed: ['ended', ['{"n":1}']],
  dead: ['ended', ['DONE_ERROR: no']],
  cancelled: ['ended', ['TERMINATED (cancelled)']],
  expired: ['ended', ['TIMEOUT']],
  retrying: ['returned', [0, 60_000]],
  scheduled: ['returned', [0, 60_000]],
  postponed: ['returned', [500]],
  retried: ['returned', ['', 'head']],
  requeued: ['returned', ['']],
  released: ['returned', ['']],
} as const satisfies Record<ScriptVerdict, readonly [keyof typeof MORE, readonly (string | number)[]]>

const names = Object.keys(VERDICTS) as readonly ScriptVerdict[]
const mostly = <T>(usual: T, other: fc.Arbitrary<T>, weight = 4): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, other)
const several = <T>(each: fc.Arbitrary<T>, minLength: number, maxLength: number): fc.Arbitrary<T[]> =>
  fc.array(each, { minLength, maxLength, size: 'max' })

const moves = fc.record({
  verdict: mostly<ScriptVerdict>('completed', fc.constantFrom(...names), 1),
  pick: fc.nat(),
  ends: mostly(true, fc.constant(false)),
  starts: mostly(true, fc.constant(false)),
  spoil: mostly<Spoil>('none', fc.constantFrom(...(Object.keys(SPOILS) as Spoil[])), 12),
})

const limits = (min: number, max: number) => mostly(undefined, fc.integer({ min, max }), 2)
const programs = fc.record({
  concurrency: limits(2, 8),
  ofKeys: limits(1, 2),
  permits: limits(2, 4),
  rate: limits(1, 20),
  tasks: several(mostly(0, fc.nat({ max: KINDS.length - 1 }), 1), 5, 30),
  rounds: several(several(moves, 2, 16), 2, 5),
  pausesAt: limits(1, 4),
  hasCandidates: mostly(false, fc.constant(true)),
})
type Drawn = typeof moves extends fc.Arbitrary<infer T> ? T : never
type Program = typeof programs extends fc.Arbitrary<infer T> ? T : never

/** The end of a task that was started with this token. The record tells it from the ends of other attempts. */
function endOf(id: string, token: string, { verdict, pick }: Drawn): ScriptEnd {
  const [kind, values] = VERDICTS[verdict]
  const more = (MORE[kind][pick % MORE[kind].length] ?? []).flat()
  if (kind === 'ended') more.push('maxAttempts', pick % 2)
  if (verdict === 'dead') {
    more.push(
      'fingerprint',
      encodeKind({ fingerprint: `f${pick % 2}`, state: 'DONE_ERROR', code: 'no', message: 'no' }),
    )
  }
  const end: AttemptEnd = { id, token, verdict: 'completed', ...(pick % 3 > 0 && { fencingToken: 1 }) }
  const fields = verdict === 'completed' ? undefined : { stacktrace: JSON.stringify([`{"token":"${token}"}`]) }
  return { id, verdict, value: values[pick % values.length] ?? '', end, more, fields }
}

/** What a move has replied, without times that differ by the duration of the calls. */
function shown([code, start]: MoveReply): unknown {
  const roughly = (ms: number): number => Math.min(ms, 1_000)
  return typeof start === 'object' && typeof code === 'number'
    ? [roughly(code), start[0], start[1], roughly(start[2]), start[3]]
    : [typeof code === 'number' ? roughly(code) : code, start]
}

async function prepare(queue: QueueOfMoves, program: Program, tasks: readonly NewTask[]): Promise<void> {
  const { redis, keys } = queue
  const { concurrency, ofKeys, permits, rate } = program
  const settings = [
    ...(ofKeys === undefined ? [] : keyLimitSettings({ concurrency: ofKeys })),
    ...(permits === undefined ? [] : capacitySetting('permits:db', permits)),
  ]
  if (settings.length > 0) await setLimits(redis, keys, settings)
  if (concurrency !== undefined) await redis.hset(keys.meta, 'concurrency', concurrency)
  if (rate !== undefined) await redis.hset(keys.meta, 'max', rate, 'duration', 600_000)
  await queue.add(tasks)
}

async function compare(program: Program): Promise<void> {
  const tasks = program.tasks.map((kind) => newOne(KINDS[kind]))
  const [together, alone] = [queueOfMoves(), queueOfMoves()]
  for (const queue of [together, alone]) await prepare(queue, program, tasks)
  const candidates = program.hasCandidates ? ` ${tasks.map(({ id }) => id).join(' ')}` : ''
  const held = new Map<string, string>()
  let time = Date.now()
  let tokens = 0
  for (const [round, drawn] of program.rounds.entries()) {
    time += 1_000
    const sent: ScriptMove[] = []
    if (round === 0) for (; tokens < 6; tokens++) sent.push({ token: `t${tokens}`, starts: true })
    for (const move of drawn) {
      const [token, id] = [...held][move.pick % Math.max(1, held.size)] ?? []
      if (token === undefined || id === undefined || !move.ends) sent.push({ token: `t${tokens++}`, starts: true })
      else {
        for (const queue of [together, alone]) await SPOILS[move.spoil](queue, id)
        sent.push({ token, starts: move.starts, end: endOf(id, token, move) })
      }
    }
    if (round === program.pausesAt)
      for (const { redis, keys } of [together, alone]) await redis.hset(keys.meta, 'paused', 1)
    const replies = await together.moves(time, sent, { candidates })
    const one: MoveReply[] = []
    for (const move of sent) one.push(...(await alone.moves(time, [move], { candidates })))
    expect(replies.map(shown)).toEqual(one.map(shown))
    expect(await together.state()).toEqual(await alone.state())
    for (const [i, { token, end }] of sent.entries()) {
      const started = idOf(replies[i] ?? [0, 0])
      if (end !== undefined) held.delete(token)
      if (started !== undefined) held.set(token, started)
    }
  }
}

it('moves that go out together leave and reply what they do one by one', async () => {
  await fc.assert(fc.asyncProperty(programs, compare), {
    numRuns: amount({ small: 30, full: 1_000 }),
    endOnFailure: true,
  })
})
