// Defines which JSON values are a Bullpen API's responses about groups: those with the fields that distinguish them.
import type { GroupList, GroupResults, GroupView, MemberResult, MembersAdded } from '@bullpen/contract'
import { listOf, number, optional, someOf, text, time, whole, word } from './shape.ts'

export const isGroup = someOf<GroupView>({
  id: text,
  state: word(),
  result: optional(word()),
  count: whole,
  ended: whole,
  progress: number,
  queues: listOf(text),
  createdAt: time,
  timeoutAt: time,
})

export const isGroupList = someOf<GroupList>({ groups: listOf(isGroup) })

export const isMembersAdded = someOf<MembersAdded>({ start: whole, count: whole, ids: listOf(text) })

export const isGroupResults = someOf<GroupResults>({
  results: listOf(someOf<MemberResult>({ member: whole, id: text, status: word() })),
  next: optional(whole),
})
