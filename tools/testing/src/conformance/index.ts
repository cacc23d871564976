// The conformance suite: what every broker of Bullpen does, with pools on it; run against each of them.
import { describe } from 'vitest'
import type { OpenBackend } from './backend.ts'
import { cancels } from './cancels.ts'
import { drains } from './drains.ts'
import { faults } from './faults.ts'
import { filteredCancels } from './filtered-cancels.ts'
import { interruptions } from './interruptions.ts'
import { listings } from './listings.ts'
import { pools } from './pools.ts'
import { records } from './records.ts'
import { steps } from './steps.ts'
import { verdicts } from './verdicts.ts'

export function brokerConformance(name: string, open: OpenBackend): void {
  describe(`${name}: a task`, () => records(open))
  describe(`${name}: by the end of its attempt`, () => verdicts(open))
  describe(`${name}: a cancelled task`, () => cancels(open))
  describe(`${name}: a cancel by filter`, () => filteredCancels(open))
  describe(`${name}: an interruption`, () => interruptions(open))
  describe(`${name}: a step`, () => steps(open))
  describe(`${name}: a listing`, () => listings(open))
  describe(`${name}: a pool`, () => pools(open))
  describe(`${name}: a drain`, () => drains(open))
  describe(`${name}: with faults`, () => faults(open))
}
