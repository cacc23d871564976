// Tests which texts are rates.
import { expect, it } from 'vitest'
import { formatEnqueueRate, readEnqueueRate } from './enqueue-rate.ts'

it.each([
  ['100/1s', { max: 100, perMs: 1_000 }, '100 tasks per 1s'],
  ['1/1.5h', { max: 1, perMs: 5_400_000 }, '1 task per 90m'],
  ['1000000/250ms', { max: 1_000_000, perMs: 250 }, '1000000 tasks per 250ms'],
])('%s is a rate', (text, rate, formatted) => {
  expect(readEnqueueRate(text)).toEqual(rate)
  expect(formatEnqueueRate(rate)).toBe(formatted)
})

it.each([
  '',
  '100',
  '100/',
  '/1s',
  '0/1s',
  '-1/1s',
  '1.5/1s',
  '1000001/1s',
  '9999999/1s',
  '100/s',
  '100/0s',
  '1/1s/1s',
  ' 1/1s',
  100,
])('%j is not a rate', (text) => {
  expect(readEnqueueRate(text)).toBeUndefined()
})
