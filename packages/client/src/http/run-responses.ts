// Defines which JSON values are a Bullpen API's responses about the runs of pipelines: those with the fields that distinguish them.
import type { RunErrors, RunErrorView, RunList, RunView } from '@bullpen/contract'
import { listOf, optional, someOf, text, time, whole, word } from './shape.ts'

export const isRun = someOf<RunView>({
  id: text,
  pipeline: text,
  state: word(),
  result: optional(word()),
  source: someOf<RunView['source']>({
    task: text,
    queue: text,
    state: word(),
    emitted: whole,
    segments: whole,
    taskId: text,
  }),
  stages: listOf(
    someOf<RunView['stages'][number]>({
      task: text,
      queue: text,
      waiting: whole,
      running: whole,
      completed: whole,
      dropped: whole,
      failed: whole,
    }),
  ),
  reduction: optional(
    someOf<NonNullable<RunView['reduction']>>({ task: text, queue: text, state: word(), taskId: text }),
  ),
  results: whole,
  errors: whole,
  startedAt: time,
  timeoutAt: time,
})

export const isRunList = someOf<RunList>({ runs: listOf(isRun) })

export const isRunErrors = someOf<RunErrors>({
  errors: listOf(someOf<RunErrorView>({ stage: whole, position: whole, end: word(), task: text })),
  next: optional(whole),
})
