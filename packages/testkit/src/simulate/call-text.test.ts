import { describe, expect, it } from 'vitest'
import { argumentsText, signalIn } from './call-text.ts'

describe('argumentsText', () => {
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const { signal } = new AbortController()

  it.each<[text: string, args: readonly unknown[]]>([
    ['', []],
    ['"ann", 7, true, null', ['ann', 7, true, null]],
    ['undefined, 1', [undefined, 1]],
    ['1', [1, undefined, undefined]],
    ['10n, NaN', [10n, Number.NaN]],
    ['{ a: 1, "b c": [2, {}] }', [{ 'b c': [2, {}], a: 1 }]],
    ['{ a: 1 }', [{ a: 1, signal, done() {}, absent: undefined }, signal, () => {}]],
    ['"2026-01-01T00:00:00.000Z"', [new Date('2026-01-01')]],
    ['<Map [["a", 1]]>, <Set [1]>', [new Map([['a', 1]]), new Set([1])]],
    ['<YWI=>', [new Uint8Array([97, 98])]],
    ['<TypeError: wrong>', [new TypeError('wrong')]],
    ['{ self: <circular> }', [circular]],
  ])('returns %s', (text, args) => {
    expect(argumentsText(args)).toBe(text)
  })

  it('replaces the idempotency key, wherever it is', () => {
    expect(argumentsText(['k', { key: 'k', other: 'kk' }], 'k')).toBe(
      '<idempotency key>, { key: <idempotency key>, other: "kk" }',
    )
  })

  it('does not confuse a value with its text', () => {
    expect(argumentsText(['1'])).not.toBe(argumentsText([1]))
    expect(argumentsText(['undefined', 1])).not.toBe(argumentsText([undefined, 1]))
  })
})

describe('signalIn', () => {
  const { signal } = new AbortController()

  it('finds a signal among the arguments and in a plain object', () => {
    expect(signalIn([1, signal])).toBe(signal)
    expect(signalIn([{ method: 'POST', signal }])).toBe(signal)
  })

  it('does not look into other objects', () => {
    expect(signalIn([{ options: { signal } }, [signal], new Map([['signal', signal]])])).toBeUndefined()
  })
})
