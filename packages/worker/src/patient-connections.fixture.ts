// Opens brokers and fleets for the tests of workers, which do not test how long a caller waits for Redis.
import { type BrokerOptions, type BullmqBroker, openBroker } from '@bullpen/bullmq'
import { openFleet } from '@bullpen/bullmq/internal'
import type { Log } from '@bullpen/contract'

/** A busy machine is no fault of the worker: its Redis may reply late. In ms. */
const commandTimeoutMs = 30_000
const log: Log = { debug() {}, info() {}, warn() {}, error() {} }

export function openPatientBroker(options: Omit<BrokerOptions, 'log' | 'sizeLimit'>): BullmqBroker {
  return openBroker({ commandTimeoutMs, sizeLimit: 10_000, log, ...options })
}

export function openPatientFleet(options: Omit<Parameters<typeof openFleet>[0], 'log'>): ReturnType<typeof openFleet> {
  return openFleet({ commandTimeoutMs, log, ...options })
}
