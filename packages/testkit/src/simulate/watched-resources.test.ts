import { describe, expect, it } from 'vitest'
import { effect } from './effect.ts'
import { watchResources } from './watched-resources.ts'

/** Watches resources and records the names of all calls. A call of an effect is marked with a star. */
function watch<T extends object>(resources: T) {
  const calls: string[] = []
  const view = watchResources(resources, ({ name, fn, receiver, args, effect }) => {
    calls.push(`${name}${effect === undefined ? '' : '*'}`)
    return Reflect.apply(fn, receiver, args)
  })
  return { view, calls }
}

class Account {
  #cents = 0
  readonly currency = 'EUR'
  get cents() {
    return this.#cents
  }
  add(cents: number) {
    this.#cents += cents
    return this
  }
  static open() {
    return new Account()
  }
}

describe('a view of resources', () => {
  it('intercepts functions, also those of nested and frozen objects, under their paths', () => {
    const send = (to: string) => `sent to ${to}`
    const { view, calls } = watch(Object.freeze({ send, nested: Object.freeze({ send, marked: effect(send) }) }))
    expect([view.send('a'), view.nested.send('b'), view.nested.marked('c')]).toEqual([
      'sent to a',
      'sent to b',
      'sent to c',
    ])
    expect(calls).toEqual(['send', 'nested.send', 'nested.marked*'])
  })

  it('calls methods on the object itself, which may have private fields', () => {
    const account = new Account()
    const { view, calls } = watch({ account })
    expect(view.account.add(5)).toBe(account)
    expect([view.account.cents, view.account.currency, account.cents]).toEqual([5, 'EUR', 5])
    expect(view.account).toBeInstanceOf(Account)
    expect(calls).toEqual(['account.add'])
  })

  it('passes the object itself to functions, not its view', () => {
    const account = new Account()
    const { view } = watch({ account, isSame: (other: Account) => other === account })
    expect(view.isSame(view.account)).toBe(true)
  })

  it('can be copied, listed and changed like the object', () => {
    const resources = { add: (a: number) => a + 1, settings: { limit: 3 } as { limit: number } }
    const { view, calls } = watch(resources)
    const { add, ...rest } = { ...view }
    expect([add(1), Object.keys(view), 'add' in view, Object.keys(rest)]).toEqual([
      2,
      ['add', 'settings'],
      true,
      ['settings'],
    ])
    view.settings.limit = 4
    expect([resources.settings.limit, view.settings.limit]).toEqual([4, 4])
    expect(calls).toEqual(['add'])
  })

  it('returns the same view of a function each time, until the function is replaced', () => {
    const resources = { add: (a: number) => a + 1 }
    const { view } = watch(resources)
    const { add } = view
    expect(view.add).toBe(add)
    resources.add = (a) => a + 2
    expect(view.add(1)).toBe(3)
  })

  it('leaves data as it is', () => {
    const data = {
      list: [1],
      date: new Date(0),
      map: new Map([[1, 2]]),
      bytes: new Uint8Array([1]),
      error: new Error('x'),
    }
    const { view } = watch(data)
    for (const name of Object.keys(data) as (keyof typeof data)[]) expect(view[name]).toBe(data[name])
  })

  it('keeps constructors and properties of functions', () => {
    const { view, calls } = watch({ Account })
    expect([new view.Account().add(1).cents, view.Account.open().cents]).toEqual([1, 0])
    expect(calls).toEqual([])
  })
})
