// Tests which follow-ups a definition may have, and which of them a catalogue refuses.
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../catalogue.ts'
import { defineTask, type TaskDefinition } from '../task-definition.ts'
import type { TaskName } from '../task-name.ts'
import type { FollowUpRule } from './rules.ts'

const receipt = defineTask({ name: 'receipt.send', queue: 'mail', input: z.object({ to: z.string() }) })
const charge = {
  name: 'card.charge',
  queue: 'payments',
  input: z.object({ order: z.coerce.number(), to: z.string().default('ann') }),
  output: z.object({ total: z.number() }),
} as const

/** Returns a task that is followed by these at its failure. */
const failing = (name: TaskName, next: () => readonly TaskDefinition[]): TaskDefinition =>
  defineTask({
    ...{ name, queue: 'q' },
    input: z.object({}),
    onFailure: (followUp) => next().map((each) => followUp(each, () => ({}))),
  })

const refusal = (message: string) =>
  expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) })

describe('the follow-ups of a definition', () => {
  test('are undefined if there are none', () => {
    expect(defineTask(charge).followUps).toBeUndefined()
    expect(defineTask({ ...charge, onEnd: () => [] }).followUps).toBeUndefined()
  })

  test('have a definition, options and a function that makes the input', () => {
    const { followUps } = defineTask({
      ...charge,
      onSuccess: (followUp) => [
        followUp(receipt, ({ input, output }) => ({ to: `${input.to} ${output.total}` }), {
          delay: '5s',
          when: ({ output }) => output.total > 0,
        }),
      ],
      onEnd: (followUp) => [
        followUp(
          () => receipt,
          () => ({ to: 'bob' }),
        ),
      ],
    })
    const [rule] = (followUps?.success ?? []) as readonly [FollowUpRule]
    const end = { input: { order: 1, to: 'ann' }, output: { total: 7 } }
    expect(rule).toMatchObject({ call: { delay: '5s' } })
    expect([rule.task(), rule.input(end), rule.when?.(end)]).toEqual([receipt, { to: 'ann 7' }, true])
    expect(followUps?.failure).toEqual([])
    expect(followUps?.end[0]?.task()).toBe(receipt)
  })

  test('have the types of the definition', () => {
    defineTask({
      ...charge,
      onSuccess: (followUp) => [
        followUp(receipt, ({ input, output }) => {
          expectTypeOf(input).toEqualTypeOf<{ order: number; to: string }>()
          expectTypeOf(output).toEqualTypeOf<{ total: number }>()
          return { to: input.to }
        }),
      ],
      onFailure: (followUp) => [
        followUp(receipt, ({ input }) => {
          expectTypeOf(input.to).toEqualTypeOf<string | undefined>()
          return { to: 'ann' }
        }),
        // @ts-expect-error: the input is that of the follow-up's definition.
        followUp(receipt, () => ({ to: 7 })),
        // @ts-expect-error: a failed task has no output.
        followUp(receipt, ({ output }) => ({ to: `${output}` })),
      ],
    })
  })

  test('are refused if they are not what the settings expect', () => {
    expect(() => defineTask({ ...charge, onEnd: [] as never })).toThrow(refusal('invalid onEnd; expected a function'))
    expect(() => defineTask({ ...charge, onEnd: () => [receipt] as never })).toThrow(refusal('invalid onEnd'))
    expect(() => defineTask({ ...charge, onEnd: (followUp) => [followUp(receipt, { to: 'ann' } as never)] })).toThrow(
      refusal('onEnd: the input is {"to":"ann"}; expected a function'),
    )
    const runAt = { runAt: new Date() } as never
    expect(() =>
      defineTask({ ...charge, onEnd: (followUp) => [followUp(receipt, () => ({ to: '' }), runAt)] }),
    ).toThrow(refusal('runAt is not an option'))
    const many = Array.from({ length: 17 }, () => receipt)
    expect(() => failing('too.many', () => many)).toThrow(refusal('17 follow-up tasks'))
  })
})

describe('a catalogue', () => {
  test('contains the follow-ups of its definitions', () => {
    const failed = failing('a.task', () => [receipt])
    expect(() => defineCatalogue(failed)).toThrow(refusal("'receipt.send', which is not in the catalogue"))
    const succeeded = defineTask({ ...charge, onSuccess: (followUp) => [followUp(receipt, () => ({ to: '' }))] })
    expect(() => defineCatalogue(succeeded)).toThrow(refusal("'receipt.send', which is not in the catalogue"))
    expect(defineCatalogue(failed, succeeded, receipt).definitions).toHaveLength(3)
  })

  test('has no cycle of follow-ups except through successes', () => {
    const lazily = (name: TaskName, next: () => TaskDefinition): TaskDefinition =>
      defineTask({ ...{ name, queue: 'q' }, input: z.object({}), onEnd: (followUp) => [followUp(next, () => ({}))] })
    const a: TaskDefinition = lazily('a.task', () => b)
    const b: TaskDefinition = lazily('b.task', () => a)
    const c = lazily('c.task', () => b)
    expect(() => defineCatalogue(c, a, b)).toThrow(refusal('form a cycle: b.task → a.task → b.task'))
    const again: TaskDefinition = defineTask({
      ...{ name: 'again.task', queue: 'q' },
      input: z.object({}),
      onSuccess: (followUp) => [
        followUp(
          (): TaskDefinition => again,
          () => ({}),
        ),
      ],
    })
    expect(defineCatalogue(again).has('again.task')).toBe(true)
  })

  test('has follow-ups that are nested at most 8 deep', () => {
    const chain: TaskDefinition[] = [failing('task.n0', () => [])]
    for (let n = 1; n <= 9; n++) chain.push(failing(`task.n${n}`, () => chain.slice(n - 1, n)))
    const nested = (n: number) => defineCatalogue(...(chain.slice(0, n + 1) as [TaskDefinition]))
    expect(nested(8).definitions).toHaveLength(9)
    expect(() => nested(9)).toThrow(refusal("'task.n9' are nested 9 deep"))
  })
})
