// Tests what the follow-ups of a definition are made from, and what is refused.
import { defineTask, type TaskDefinition, type TaskId } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newTask } from '../task/new-task.ts'
import { successTasks } from './defined.ts'

const common = { queue: 'q', input: z.object({ n: z.int() }), output: z.object({ n: z.int() }) } as const
const last = defineTask({ ...common, name: 'test.last' })
const middle = defineTask({
  ...common,
  name: 'test.middle',
  onEnd: (followUp) => [followUp(last, ({ input }) => ({ n: 10 * input.n }))],
})
const first = defineTask({
  ...common,
  name: 'test.first',
  onSuccess: (followUp) => [followUp(middle, ({ output }) => ({ n: output.n }))],
  onFailure: (followUp) => [
    followUp(middle, ({ input }) => ({ n: input.n / 2 }), { delay: '5s', when: ({ input }) => input.n > 0 }),
  ],
})
const throwing = defineTask({
  ...common,
  name: 'test.throwing',
  onEnd: (followUp) => [
    followUp(last, () => {
      throw new TypeError('no such field')
    }),
  ],
})

const origin = { id: 'q-1' as TaskId, enqueuedAt: 0, correlationId: 'c-1' }
const followUpsOf = (definition: TaskDefinition, input: unknown) => newTask(definition, input, {}, origin).followUps

describe('the follow-ups of a definition', () => {
  it('are made from the input, with their own follow-ups, when a task is created', () => {
    const task = { task: last.name, input: { n: 20 }, correlationId: 'c-1', depth: 2 }
    expect(followUpsOf(first, { n: 4 })).toMatchObject([
      {
        on: 'failure',
        task: { task: middle.name, input: { n: 2 }, delayMs: 5_000, depth: 1, followUps: [{ on: 'end', task }] },
      },
    ])
    expect(followUpsOf(first, { n: 0 })).toBeUndefined()
    expect(followUpsOf(last, { n: 0 })).toBeUndefined()
  })

  it('are made from the input and the output for a success', () => {
    const completed = { id: origin.id, input: { n: 1 }, output: { n: 3 } }
    const [task, ...others] = successTasks(first, completed, { correlationId: 'c-1', depth: 7 })
    expect(task).toMatchObject({ task: middle.name, input: { n: 3 }, depth: 8, followUps: [{ task: { depth: 9 } }] })
    expect(others).toEqual([])
  })

  it.each([
    [
      first,
      { n: 3 },
      'onFailure/0 of test.first is invalid: the input does not match the schema of test.middle: /input/n',
    ],
    [throwing, { n: 3 }, 'onEnd/0 of test.throwing is invalid: no such field'],
  ] as const)('are refused with the place of the invalid one', (definition, input, message) => {
    expect(() => followUpsOf(definition, input)).toThrow(
      expect.objectContaining({ code: 'invalid_follow_up', message: expect.stringContaining(message) }),
    )
  })

  it('are refused if they would be number 33 in a row, also one that is stored within another', () => {
    const completed = { id: origin.id, input: { n: 1 }, output: { n: 3 } }
    const after = (depth: number) => successTasks(first, completed, { correlationId: undefined, depth })
    expect(after(30)).toMatchObject([{ depth: 31, followUps: [{ task: { depth: 32 } }] }])
    for (const depth of [31, 32]) {
      expect(() => after(depth)).toThrow(
        expect.objectContaining({
          code: 'invalid_follow_up',
          message: expect.stringContaining('number 33 in a chain'),
        }),
      )
    }
  })

  it('count together with those of the call', () => {
    const called = Array.from({ length: 16 }, () => newTask(last, { n: 1 }, {}, origin))
    const followUps = called.map((task) => ({ on: 'end', task: { ...task, expiresInMs: undefined } }) as const)
    expect(() => newTask(first, { n: 4 }, {}, { ...origin, followUps })).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('the call names 16') }),
    )
    expect(newTask(first, { n: 0 }, {}, { ...origin, followUps }).followUps).toHaveLength(16)
  })
})
