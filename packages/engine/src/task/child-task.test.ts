import type { TaskId } from '@bullpen/contract'
import { createTaskId, readTaskId } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sha256 } from '../node/index.ts'
import { soloist, tasks } from '../pool/pool.fixture.ts'
import { childTask, childTaskId } from './child-task.ts'

const parentId = (createdAt: number, random: Uint8Array) => createTaskId('q', createdAt, random)
const parent = {
  id: parentId(1_700_000_000_000, new Uint8Array(10)),
  correlationId: 'c-1',
  fencingToken: 2,
  apiKeyName: undefined,
}

/** The definitions of follow-ups. These children have none. */
const noFollowUps = { get: () => expect.fail('no follow-up is expected') }

describe('the id of a child', () => {
  it('is the same for the same parent, definition and key; it names the child’s queue, and its parent’s time', () => {
    const id = childTaskId(parent.id, tasks.child, 'a', sha256)
    expect(childTaskId(parent.id, tasks.child, 'a', sha256)).toBe(id)
    expect(readTaskId(id)).toMatchObject({ queue: 'test', createdAt: 1_700_000_000_000 })
  })

  it('differs for every other parent, definition or key', () => {
    const part = fc.record({
      // Few parents and keys of few characters, so that near ones are tried.
      parent: fc
        .tuple(fc.integer({ min: 1, max: 3 }), fc.uint8Array({ minLength: 10, maxLength: 10, max: 1 }))
        .map(([createdAt, random]) => parentId(createdAt, random)),
      name: fc.constantFrom('a.b', 'a.b1', 'a1.b'),
      key: fc.string({ unit: fc.constantFrom('1', ':', 'a'), maxLength: 4 }),
    })
    const idOf = ({ parent, name, key }: { parent: TaskId; name: string; key: string }) =>
      childTaskId(parent, { name: name as 'a.b', queue: 'q' }, key, sha256)
    fc.assert(
      fc.property(part, part, (one, other) => {
        const same = one.parent === other.parent && one.name === other.name && one.key === other.key
        expect(idOf(one) === idOf(other)).toBe(same)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a child', () => {
  it('carries its parent’s correlation id on, and what was said of it', () => {
    expect(
      childTask(parent, tasks.child, { n: 5 }, { childKey: 'a', delay: '1s' }, 7_000, sha256, noFollowUps),
    ).toMatchObject({
      id: childTaskId(parent.id, tasks.child, 'a', sha256),
      task: 'test.child',
      input: { n: 5 },
      correlationId: 'c-1',
      caller: { token: '2' },
      enqueuedAt: 7_000,
      delayMs: 1_000,
    })
  })

  it('is rejected if the input does not match the schema or the child key is not a short text', () => {
    expect(() => childTask(parent, tasks.child, { n: 'x' }, {}, 0, sha256, noFollowUps)).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('/input/n: ') }),
    )
    for (const childKey of ['x'.repeat(257), 7 as never, 'x\ud800', 'a\0', 'a\nb', '\u202e']) {
      expect(() => childTask(parent, tasks.child, {}, { childKey }, 0, sha256, noFollowUps)).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          errors: [expect.objectContaining({ pointer: '/childKey' })],
        }),
      )
    }
  })
})

/** As JSON.parse creates it. */
const poisoned = (text: string): never => JSON.parse(text) as never

describe('a child with a key that could change prototypes', () => {
  it.each([
    ['/meta/__proto__', { meta: poisoned('{"__proto__":"a"}') }],
    ['/meta/constructor/prototype', { meta: poisoned('{"constructor":{"prototype":"a"}}') }],
    ['/onSuccess/0/meta/__proto__', { onSuccess: [poisoned('{"task":"a.b","input":{},"meta":{"__proto__":"a"}}')] }],
    ['/onEnd/0/input/__proto__', { onEnd: [poisoned('{"task":"a.b","input":{"__proto__":"a"}}')] }],
  ])('at %s is rejected', (pointer, options) => {
    expect(() => childTask(parent, tasks.child, { n: 1 }, options, 0, sha256, noFollowUps)).toThrow(
      expect.objectContaining({ code: 'invalid_request', errors: [expect.objectContaining({ pointer })] }),
    )
  })

  it.each([
    ['input', poisoned('{"n":1,"__proto__":{"n":2}}')],
    ['input as JSON', { n: 1, toJSON: () => poisoned('{"n":1,"__proto__":{"n":2}}') }],
  ])('in its %s is rejected', (_, input) => {
    expect(() => childTask(parent, tasks.child, input, {}, 0, sha256, noFollowUps)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        errors: [expect.objectContaining({ pointer: '/input/__proto__' })],
      }),
    )
  })

  it('is stored if the key is only a name of an inherited property', () => {
    const meta = { constructor: 'a', prototype: 'b', toString: 'c' } as never
    expect(childTask(parent, tasks.child, { n: 1 }, { meta }, 0, sha256, noFollowUps).meta).toEqual(meta)
  })
})

describe('a handler that enqueues', () => {
  it('enqueues the same child id in every attempt, and the action shows which attempt stored the child', async () => {
    const { run, calls, enqueued, clock, named } = soloist()
    const answers = []
    const parent = { id: parentId(5, new Uint8Array(10)) }
    for (const start of [1, 2]) {
      const ended = run('test.long', { correlationId: 'c-9' }, { ...parent, fencingToken: start })
      await clock.advance(0)
      answers.push(await calls.at(-1)?.context.enqueue(tasks.child, { n: 2 }, { childKey: 'step' }))
      calls.at(-1)?.finish()
      await ended
    }
    const id = answers[0]?.id
    expect(answers).toEqual([
      { id, action: 'created' },
      { id, action: 'existing' },
    ])
    expect(enqueued.map(({ id, correlationId }) => [id, correlationId])).toEqual([
      [id, 'c-9'],
      [id, 'c-9'],
    ])
    expect(named('task.enqueued')).toHaveLength(1)
  })

  it('reports a child whose first enqueue was stored without a reply once, when it enqueues the child again', async () => {
    const { run, calls, clock, store, named } = soloist()
    const ended = run('test.long')
    await clock.advance(0)
    const { context, finish } = calls[0] ?? expect.fail('no handler was called')
    store.losesReplies = true
    await expect(context.enqueue(tasks.child, {})).rejects.toThrow('the reply is lost')
    store.losesReplies = false
    expect(await context.enqueue(tasks.child, {})).toMatchObject({ action: 'created' })
    expect(named('task.enqueued')).toHaveLength(1)
    finish()
    await ended
  })

  it('can repeat a failed enqueue with the same child key, but not while the first call is pending', async () => {
    const { run, calls, clock, store } = soloist()
    const ended = run('test.long')
    await clock.advance(0)
    const { context, finish } = calls[0] ?? expect.fail('no handler was called')
    store.down = true
    const first = context.enqueue(tasks.child, {})
    await expect(context.enqueue(tasks.child, {})).rejects.toMatchObject({ code: 'duplicate_child_key' })
    await expect(first).rejects.toThrow('the store is away')
    store.down = false
    expect(await context.enqueue(tasks.child, {})).toEqual({ id: expect.stringMatching(/^test-/), action: 'created' })
    finish()
    await ended
  })

  it.each([
    [{ meta: { n: 1 } }, '/meta/n'],
    [{ meta: 'x' }, '/meta'],
    [{ delay: 'soon' }, '/delay'],
    [{ dely: '1s' }, '/dely'],
    [{ tags: ['a b'] }, '/tags/0'],
    [{ priority: 10 }, '/priority'],
    [{ runAt: 'tomorrow' }, '/runAt'],
    [{ runAt: new Date(Number.NaN) }, '/runAt'],
  ])('gets a pointer to the invalid option in %j', async (options, pointer) => {
    const { run, calls, clock, enqueued } = soloist()
    const ended = run('test.long')
    await clock.advance(0)
    const { context, finish } = calls[0] ?? expect.fail('no handler was called')
    await expect(context.enqueue(tasks.child, {}, options as never)).rejects.toMatchObject({
      code: 'invalid_request',
      errors: [{ pointer, message: expect.any(String) }],
    })
    expect(enqueued).toEqual([])
    finish()
    await ended
  })

  it('cannot use a child key twice for one definition, enqueue an unknown task, or enqueue after its attempt has ended', async () => {
    const { run, calls, clock } = soloist()
    const ended = run('test.long')
    await clock.advance(0)
    const { context, finish } = calls[0] ?? expect.fail('no handler was called')
    await context.enqueue(tasks.child, {})
    await expect(context.enqueue(tasks.child, {})).rejects.toMatchObject({ code: 'duplicate_child_key' })
    await context.enqueue(tasks.short, {})
    await expect(context.enqueue({ ...tasks.child, name: 'no.such' }, {})).rejects.toMatchObject({
      code: 'unknown_task',
    })
    finish()
    await ended
    await expect(context.enqueue(tasks.child, {}, { childKey: 'late' })).rejects.toMatchObject({ code: 'wrong_state' })
  })
})
