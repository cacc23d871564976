// Tests how the fields of a group's hash are decoded.
import { createGroupId, groupViewSchema } from '@bullpen/contract/internal'
import { groupView } from '@bullpen/engine/internal'
import { expect, it } from 'vitest'
import { groupOf } from './group-record.ts'

const id = createGroupId(0, new Uint8Array(10))

it.each([
  ['cancel', 'cancel'],
  ['continue', 'continue'],
  // A client over Redis once stored any value.
  ['stop', 'continue'],
  ['', 'continue'],
])('a group that was stored with onError %j can be shown, with onError %j', (stored, shown) => {
  const group = groupOf(id, ['state', 'open', 'by', 'ann', 'onError', stored, 'createdAt', '1', 'timeoutAt', '2'])
  if (group === undefined) throw new Error('there is no group')
  expect(groupViewSchema.parse(groupView(group))).toMatchObject({ onError: shown })
})
