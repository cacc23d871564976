// Tests what a schedule in a catalogue refuses.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTask } from '../definition/task-definition.ts'
import { defineSchedule } from './schedule-definition.ts'

const task = defineTask({ name: 'sched.task', queue: 'sched', input: z.record(z.string(), z.string()) })

test.each(['meta', 'input'])('a key of its %s that would be dropped without a word is refused', (field) => {
  const options = { name: 'nightly', task, input: {}, every: '1h', [field]: JSON.parse('{"__proto__":"a"}') } as const
  expect(() => defineSchedule(options)).toThrow(
    expect.objectContaining({
      code: 'invalid_definition',
      message: expect.stringContaining(`schedule "nightly": /${field}/__proto__: `),
    }),
  )
})
