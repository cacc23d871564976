// Opens brokers for the tests that do not test how long a caller waits for Redis.
import { openBroker } from './broker.ts'
import type { BrokerOptions, BullmqBroker } from './broker-options.ts'

/** A busy machine is no fault of the broker: its Redis may reply late. In ms. */
const COMMAND_TIMEOUT_MS = 30_000

export function openPatientBroker(options: BrokerOptions): BullmqBroker {
  return openBroker({ commandTimeoutMs: COMMAND_TIMEOUT_MS, ...options })
}
