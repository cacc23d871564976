// api.md lists the problems that the API answers with, each with the status that the contract gives it.
import { HTTP_STATUS } from '@bullpen/contract/internal'
import { expect, it } from 'vitest'
import { rows, section } from './markdown-tables.ts'

it('docs/api.md lists every problem code with its HTTP status, and no other', () => {
  const listed = rows(section('api.md', 'Problems')).map(([code, status]) => [code, Number(status)])
  expect(Object.fromEntries(listed)).toEqual(HTTP_STATUS)
  expect(listed).toHaveLength(Object.keys(HTTP_STATUS).length)
})
