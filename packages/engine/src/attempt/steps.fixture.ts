// Stores step results in memory for tests, with a lock that can be lost.

import type { StoredSteps } from '../ports/steps.ts'
export function stepsInMemory() {
  const kept = new Map<string, string>()
  const calls: string[] = []
  let holdsLock = true
  const steps: StoredSteps = {
    async read() {
      calls.push('read')
      return new Map(kept)
    },
    async keep(step, result) {
      calls.push(`keep ${step}`)
      if (!holdsLock) return undefined
      if (!kept.has(step)) kept.set(step, result)
      return kept.get(step)
    },
    async register(kind, identity) {
      calls.push(`register ${kind} ${identity}`)
      return holdsLock ? 'stored' : 'lock_lost'
    },
  }
  return { steps, kept, calls, loseLock: () => (holdsLock = false) }
}
