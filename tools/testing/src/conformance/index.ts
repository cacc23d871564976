// Defines the conformance suite, which tests the behaviour that every broker and the pools on it must have. The suite runs
// against the Redis broker and the in-memory broker.
import { describe } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { bulk } from './bulk.ts'
import { cancels } from './cancels.ts'
import { drains } from './drains.ts'
import { faults } from './faults.ts'
import { filteredCancels } from './filtered-cancels.ts'
import { idempotencyKeys } from './idempotency.ts'
import { interruptions } from './interruptions.ts'
import { limits } from './limits.ts'
import { listings } from './listings.ts'
import { payloads } from './payloads.ts'
import { pools } from './pools.ts'
import { priorities } from './priorities.ts'
import { records } from './records.ts'
import { retention } from './retention.ts'
import { steps } from './steps.ts'
import { uniqueKeys } from './unique-keys.ts'
import { uniqueKeysModel } from './unique-keys-model.ts'
import { verdicts } from './verdicts.ts'

export function brokerConformance(name: string, open: OpenBackend): void {
  describe(`${name}: the record of a task`, () => records(open))
  describe(`${name}: idempotency keys`, () => idempotencyKeys(open))
  describe(`${name}: unique keys`, () => uniqueKeys(open))
  describe(`${name}: the model of unique keys`, () => uniqueKeysModel(open))
  describe(`${name}: limits`, () => limits(open))
  describe(`${name}: enqueueing several tasks at once`, () => bulk(open))
  describe(`${name}: priorities`, () => priorities(open))
  describe(`${name}: the verdict on an attempt`, () => verdicts(open))
  describe(`${name}: cancelling a task`, () => cancels(open))
  describe(`${name}: a cancel by filter`, () => filteredCancels(open))
  describe(`${name}: interruptions`, () => interruptions(open))
  describe(`${name}: steps`, () => steps(open))
  describe(`${name}: payloads`, () => payloads(open))
  describe(`${name}: listing and waiting`, () => listings(open))
  describe(`${name}: retention`, () => retention(open))
  describe(`${name}: pools`, () => pools(open))
  describe(`${name}: drains`, () => drains(open))
  describe(`${name}: faults`, () => faults(open))
}
