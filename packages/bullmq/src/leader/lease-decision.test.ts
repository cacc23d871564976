// The decisions about the leadership, with time passed in: two processes never lead at the same time, and one of them soon does.
import { assertTransition } from '@bullpen/engine/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { afterAsking, LEADERSHIP_TRANSITIONS, type Leadership, RETRY_MS, SPREAD_MS } from './lease-decision.ts'

const TIMES = { leaseMs: 3_000, renewMs: 1_000 }
const FOLLOWER: Leadership = { state: 'follower', askAt: 0 }
const LEADER: Leadership = { state: 'leader', fencing: 4, until: 3_000, askAt: 1_000 }

describe('a leader', () => {
  it('leads until its lease expires, counted from when the request was sent', () => {
    const asked = { answer: { fencing: 5, leftMs: 3_000 }, sentAt: 100, now: 400, random: 0 }
    expect(afterAsking(FOLLOWER, asked, TIMES)).toEqual({ state: 'leader', fencing: 5, until: 3_100, askAt: 1_100 })
  })

  it('keeps the lease while Redis does not answer, and gives it up when it may have expired', () => {
    const silent = { answer: undefined, sentAt: 1_000, random: 0 }
    expect(afterAsking(LEADER, { ...silent, now: 2_999 }, TIMES)).toEqual({ ...LEADER, askAt: 2_999 + RETRY_MS })
    const late = afterAsking(LEADER, { ...silent, now: 3_000 }, TIMES)
    expect(late).toEqual({ state: 'follower', askAt: 3_000 + RETRY_MS })
  })

  it('follows when another process leads', () => {
    const asked = { answer: { fencing: 0, leftMs: 2_500 }, sentAt: 20_000, now: 20_001, random: 0.5 }
    expect(afterAsking(LEADER, asked, TIMES)).toEqual({ state: 'follower', askAt: 22_501 + SPREAD_MS / 2 })
  })
})

/** A lease in Redis, as the script implements it. */
function lease() {
  let held: { readonly holder: number; until: number } | undefined
  let number = 0
  return {
    take(holder: number, at: number) {
      const current = held !== undefined && held.until > at ? held : undefined
      if (current !== undefined && current.holder !== holder) return { fencing: 0, leftMs: current.until - at }
      if (current === undefined) number++
      held = { holder, until: at + TIMES.leaseMs }
      return { fencing: number, leftMs: TIMES.leaseMs }
    },
  }
}

it('two processes never lead at once, and one leads within a lease after the other has stopped, whatever the delays are', () => {
  const delay = fc.integer({ min: 0, max: 700 })
  const step = fc.record({
    who: fc.integer({ min: 0, max: 2 }),
    there: delay,
    back: delay,
    lost: fc.boolean(),
    pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 20_000 })),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => {
      const redis = lease()
      const positions: Leadership[] = [FOLLOWER, FOLLOWER, FOLLOWER]
      const times = [0, 0, 0]
      const spans: { readonly who: number; readonly from: number; readonly until: number; readonly fencing: number }[] =
        []
      // The requests reach Redis in the order of its clock.
      let redisTime = 0
      for (const { who, there, back, lost, pauseMs } of steps) {
        const position = positions[who] as Leadership
        if (position.state === 'closed') continue
        const sentAt = Math.max(times[who] ?? 0, position.askAt, redisTime - there) + pauseMs
        redisTime = Math.max(redisTime, sentAt + there)
        const reply = redis.take(who, redisTime)
        const now = redisTime + back
        times[who] = now
        const next = afterAsking(position, { answer: lost ? undefined : reply, sentAt, now, random: 0 }, TIMES)
        assertTransition('the leadership', LEADERSHIP_TRANSITIONS, position.state, next.state)
        positions[who] = next
        if (next.state === 'leader') spans.push({ who, from: now, until: next.until, fencing: next.fencing })
      }
      for (const one of spans) {
        for (const other of spans) {
          const overlap = one.who !== other.who && one.from < other.until && other.from < one.until
          expect(overlap, JSON.stringify({ one, other })).toBe(false)
          if (one.who !== other.who) expect(one.fencing).not.toBe(other.fencing)
        }
      }
      // When the current lease expires, the next process that asks for it becomes the leader.
      const asker = positions.findIndex(({ state }) => state === 'follower')
      if (asker < 0) return
      const at = redisTime + TIMES.leaseMs
      const answer = redis.take(asker, at)
      expect(afterAsking(positions[asker] as Leadership, { answer, sentAt: at, now: at, random: 0 }, TIMES).state).toBe(
        'leader',
      )
    }),
  )
})
