// Defines which JSON values are a Bullpen API's responses about schedules: those with the fields that distinguish them.
import type { Accepted, ScheduleDeleted, ScheduleStored, ScheduleSync, ScheduleView } from '@bullpen/contract'
import type { ScheduleList } from '@bullpen/contract/internal'
import { bool, listOf, oneOf, optional, someOf, text, time, whole, word } from './shape.ts'

export const isSchedule = someOf<ScheduleView>({
  name: text,
  task: text,
  queue: text,
  status: word(),
  createdAt: time,
  nextTicks: listOf(time),
  waiting: listOf(time),
  runs: whole,
  skipped: whole,
  trouble: listOf(someOf<ScheduleView['trouble'][number]>({ kind: word(), since: time, detail: text })),
})

export const isScheduleList = someOf<ScheduleList>({ schedules: listOf(isSchedule), next: optional(text) })

export const isScheduleStored = someOf<ScheduleStored>({
  action: word(),
  schedule: isSchedule,
})

export const isScheduleRun = someOf<Accepted>({ id: text })

export const isScheduleDeleted = someOf<ScheduleDeleted>({ name: text, action: oneOf(['deleted']) })

export const isScheduleSync = someOf<ScheduleSync>({
  dryRun: bool,
  changes: listOf(
    someOf<ScheduleSync['changes'][number]>({
      name: text,
      queue: text,
      action: word(),
      fields: listOf(someOf<ScheduleSync['changes'][number]['fields'][number]>({ field: text })),
    }),
  ),
})
