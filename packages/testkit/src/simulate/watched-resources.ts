// Makes the calls of functions in a worker's resources visible to the simulation.
import { type EffectCall, markOf } from './effect.ts'

type AnyFunction = (...args: never[]) => unknown

/** Objects whose methods work only on the object itself, and that are data rather than resources. */
const OPAQUE = [
  Date,
  RegExp,
  Map,
  Set,
  WeakMap,
  WeakSet,
  Promise,
  Error,
  ArrayBuffer,
  EventTarget,
  URL,
  URLSearchParams,
]

function isOpaque(value: object): boolean {
  return Array.isArray(value) || ArrayBuffer.isView(value) || OPAQUE.some((type) => value instanceof type)
}

/**
 * Returns a view of the resources in which every function is intercepted, also those of nested objects. What a function returns is
 * not watched.
 */
export function watchResources<T extends object>(resources: T, intercept: (call: EffectCall) => unknown): T {
  const originals = new WeakMap<object, object>()
  const original = <V>(value: V): V =>
    typeof value === 'object' && value !== null ? ((originals.get(value) as V | undefined) ?? value) : value

  const view = (target: object, path: string): object => {
    const created =
      typeof target === 'function' ? watchedFunction(target as AnyFunction, path) : watchedObject(target, path)
    originals.set(created, target)
    return created
  }

  const watchedFunction = (fn: AnyFunction, path: string): object => {
    const mark = markOf(fn)
    const apply = (_: unknown, receiver: unknown, args: readonly unknown[]): unknown =>
      intercept({
        name: mark?.options.name ?? path,
        fn: mark?.fn ?? fn,
        // Methods with private fields work only on the object itself.
        receiver: original(receiver),
        args: args.map(original),
        effect: mark?.options,
        callee: apply as AnyFunction,
      })
    return new Proxy(fn, { apply })
  }

  const watchedObject = (target: object, path: string): object => {
    // A function has a view for each path that leads to it, because its calls are named after the path.
    const known = new Map<string, { readonly value: object; readonly view: object }>()
    const member = (name: string | symbol): unknown => {
      const value: unknown = Reflect.get(target, name, target)
      const isWatched = typeof value === 'function' || (typeof value === 'object' && value !== null && !isOpaque(value))
      if (!isWatched || typeof name === 'symbol' || name === 'constructor') return value
      const found = known.get(name)
      if (found?.value === value) return found.view
      const created = view(value as object, path === '' ? name : `${path}.${name}`)
      known.set(name, { value: value as object, view: created })
      return created
    }
    // The proxy has an empty object as its target, because it could not replace the properties of a frozen object.
    return new Proxy(Object.create(Reflect.getPrototypeOf(target)), {
      get: (_, name) => member(name),
      set: (_, name, value) => Reflect.set(target, name, value, target),
      has: (_, name) => Reflect.has(target, name),
      ownKeys: () => Reflect.ownKeys(target),
      getOwnPropertyDescriptor(_, name) {
        const found = Reflect.getOwnPropertyDescriptor(target, name)
        return (
          found && { value: member(name), enumerable: found.enumerable === true, writable: true, configurable: true }
        )
      },
    })
  }

  return view(resources, '') as T
}
