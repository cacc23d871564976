// Tests that the connections of a queue's workers are found by the names that BullMQ gives to them.
import { expect, it } from 'vitest'
import { countWorkers, workerConnections } from './worker-connections.ts'

const MAIL = Buffer.from('mail').toString('base64')

const line = (address: string, name: string): string =>
  `id=7 addr=${address} laddr=10.0.0.1:6379 fd=8 name=${name} age=2 idle=1 flags=b db=0 cmd=bzpopmin user=default`

const CLIENTS = [
  line('10.0.0.7:4242', `{bullpen.mail}:${MAIL}`),
  line('[::1]:4243', `{bullpen.mail}:${MAIL}:w:old:1`),
  line('10.0.0.7:4244', `{bullpen.mail}:${MAIL}:qe`),
  line('10.0.0.7:4245', `{bullpen.mail}:${MAIL}2`),
  line('10.0.0.7:4246', `bull:${MAIL}`),
  line('10.0.0.7:4247', ''),
].join('\n')

it('the workers of a queue are found with their names and addresses, and no other clients', () => {
  expect(workerConnections(CLIENTS, { prefix: '{bullpen.mail}', name: 'mail' })).toEqual([
    { name: '', address: '10.0.0.7:4242' },
    { name: 'old:1', address: '[::1]:4243' },
  ])
})

it('workers are counted by queue, unless Redis does not permit it', () => {
  expect(countWorkers(CLIENTS)({ prefix: 'bull', name: 'mail' })).toBe(1)
  expect(countWorkers(undefined)({ prefix: 'bull', name: 'mail' })).toBeUndefined()
})
