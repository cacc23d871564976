// Tests which tasks a process remembers, and for how long.
import { createTaskId } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { expect, it } from 'vitest'
import { createAcknowledgedTasks } from './acknowledged-tasks.ts'

const idIn = (queue: string, n: number) => createTaskId(queue, n, new Uint8Array(10))

function remembering(most?: number) {
  let now = 0
  const tasks = createAcknowledgedTasks(() => now, { rememberMs: 1_000, ...(most && { most }) })
  return {
    acknowledge: (at: number, queue: string, caller?: NewTask['caller']) => {
      now = at
      const id = idIn(queue, at)
      tasks.note({ id, action: 'created' }, { id, caller } as NewTask)
      return id
    },
    tasks,
  }
}

it('tasks are remembered for the given time, and forgotten within twice that time', () => {
  const { tasks, acknowledge } = remembering()
  const ids = [0, 999, 1_000, 1_999].map((at) => acknowledge(at, 'mail'))
  expect(tasks.byQueue()).toEqual(new Map([['mail', ids]]))
  const newest = acknowledge(2_000, 'mail')
  expect(tasks.byQueue()).toEqual(new Map([['mail', [...ids.slice(2), newest]]]))
})

it('if there are too many tasks, only the newest are remembered', () => {
  const { tasks, acknowledge } = remembering(2)
  const ids = [0, 1, 2, 3, 4].map((at) => acknowledge(at, 'mail'))
  expect(tasks.byQueue()).toEqual(new Map([['mail', ids.slice(2)]]))
})

it('a task is remembered with its queue and the token of its caller, unless another task was returned', () => {
  const { tasks, acknowledge } = remembering()
  const mail = acknowledge(0, 'mail', { token: 't1' })
  const files = acknowledge(1, 'files')
  const existing = idIn('files', 7)
  tasks.note({ id: existing, action: 'existing' }, { id: idIn('files', 8), caller: { token: 't2' } } as never)
  expect(tasks.byQueue()).toEqual(
    new Map([
      ['mail', [`${mail} t1`]],
      ['files', [files, existing]],
    ]),
  )
})
