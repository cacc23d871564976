// Tests the phases of an API.
import { describe, expect, test } from 'vitest'
import { API_TRANSITIONS, ApiLifecycle, type ApiPhase } from './lifecycle.ts'

const phases = Object.keys(API_TRANSITIONS) as ApiPhase[]

describe('the lifecycle', () => {
  test('reaches every phase from new, and returns to none', () => {
    const seen = new Set<ApiPhase>(['new'])
    for (const phase of seen) for (const next of API_TRANSITIONS[phase]) seen.add(next)
    expect([...seen].sort()).toEqual(phases.toSorted())
    for (const [index, phase] of phases.entries()) {
      for (const next of API_TRANSITIONS[phase]) expect(phases.indexOf(next)).toBeGreaterThan(index)
    }
  })

  test('rejects a transition that is not in the table, and stays in its phase', () => {
    const lifecycle = new ApiLifecycle()
    expect(() => lifecycle.moveTo('running')).toThrow(expect.objectContaining({ code: 'illegal_transition' }))
    expect(lifecycle.phase).toBe('new')
  })

  test('lets an API listen once', () => {
    const lifecycle = new ApiLifecycle()
    lifecycle.beginListening()
    expect(() => lifecycle.beginListening()).toThrow(
      'listen() can be called only once, on a new API; this API is opening',
    )
  })
})
