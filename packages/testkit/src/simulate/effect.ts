// Marks the functions that have an effect outside the task, such as sending a mail or writing a row.
import { AsyncLocalStorage } from 'node:async_hooks'

/** Any function. Its parameters are `never`, so that every function type is assignable. */
type AnyFunction = (...args: never[]) => unknown

export interface EffectOptions<Args extends readonly unknown[] = readonly unknown[]> {
  /**
   * The name of the effect in reports. Defaults to the path of the function in the resources, such as `mailer.send`. Set it for a
   * function of an object that a resource returns, such as a transaction.
   */
  readonly name?: string
  /**
   * How the receiving system recognises a call that it has already carried out, and therefore does not carry out again:
   *
   * - `'nothing'`, the default: it carries out every call.
   * - `'arguments'`: a call with the same arguments changes nothing, as when a file is written or a row is set to a value.
   * - A function that returns the idempotency key of a call, such as the key that `ctx.once` passes to its function, or the value of
   *   a unique column. If it returns undefined, the call is carried out.
   */
  readonly deduplicatedBy?: 'nothing' | 'arguments' | ((...args: Args) => string | undefined)
  /**
   * Returns what distinguishes this effect from others of the same function. Two calls whose values are equal as text are the same
   * effect. Defaults to the arguments without functions, signals and the idempotency key. Set it if an argument contains a time
   * or a random value.
   */
  readonly identity?: (...args: Args) => unknown
  /**
   * Set for a function that undoes an effect, such as a refund. Returns the idempotency key of the effect that the call undoes.
   * The undone effect is no longer counted, and the receiving system carries out the next call with its key.
   */
  readonly undoes?: (...args: Args) => string
  /**
   * Set to `'accepted'` if the receiving system cannot recognise a repeated call, and you accept that the effect is repeated in
   * one case: it happened in a step of `ctx.once`, and the attempt was interrupted before the step's result was stored. By default,
   * such a repetition is a fault.
   */
  readonly unrecordedRepeat?: 'accepted'
}

/** A step of `ctx.once` that is running. */
export interface RunningStep {
  /** Whether its result has been stored. */
  isRecorded: boolean
}

/** A call of an effect, as its attempt intercepts it. */
export interface EffectCall {
  readonly name: string
  readonly fn: AnyFunction
  readonly receiver: unknown
  readonly args: readonly unknown[]
  readonly effect: EffectOptions | undefined
  readonly callee: AnyFunction
}

/** The attempt to which the running code belongs, and the step of `ctx.once` in which it runs. */
export interface AttemptScope {
  readonly intercept: (call: EffectCall) => unknown
  readonly step: RunningStep | undefined
}

export const attemptScope = new AsyncLocalStorage<AttemptScope>()

interface Marked {
  readonly fn: AnyFunction
  readonly options: EffectOptions
}

const marks = new WeakMap<object, Marked>()

/** Returns the function and the options that were passed to {@link effect}, or undefined if the function is not marked. */
export function markOf(fn: object): Marked | undefined {
  return marks.get(fn)
}

/**
 * Marks a function as an effect, for `simulate`. Returns a function that does the same. Outside a simulation, the mark has no
 * effect.
 *
 * @example { mailer: { send: effect(async (to: string, key: string) => 'sent', { deduplicatedBy: (_to, key) => key }) } }
 */
export function effect<F extends AnyFunction>(fn: F, options: EffectOptions<Parameters<F>> = {}): F {
  // The options are called with the arguments of `fn` only.
  const untyped = options as EffectOptions
  const marked = function (this: unknown, ...args: never[]): unknown {
    const scope = attemptScope.getStore()
    return scope === undefined
      ? Reflect.apply(fn, this, args)
      : scope.intercept({
          name: untyped.name ?? (fn.name || 'effect'),
          fn,
          receiver: this,
          args,
          effect: untyped,
          callee: marked,
        })
  }
  marks.set(marked, { fn, options: untyped })
  // `marked` takes the arguments of `fn` and returns what `fn` returns, which its own type does not express.
  return marked as unknown as F
}

/** The options of an object's methods that are effects. */
export type EffectMethods<T extends object> = {
  readonly [Name in keyof T as T[Name] extends AnyFunction ? Name : never]?: T[Name] extends AnyFunction
    ? EffectOptions<Parameters<T[Name]>>
    : never
}

/**
 * Marks methods of an object as effects, as {@link effect} does for one function. The methods are replaced in the object itself,
 * which is also returned.
 *
 * @example { bank: effects(new FakeBank(), { charge: { deduplicatedBy: (_cents, key) => key }, refund: {} }) }
 * @throws TypeError if the object is frozen or a name is not that of a method.
 */
export function effects<T extends object>(target: T, methods: EffectMethods<T>): T {
  for (const [name, options] of Object.entries(methods)) {
    const method: unknown = Reflect.get(target, name)
    if (typeof method !== 'function') throw new TypeError(`cannot mark ${name} as an effect: it is not a method`)
    const value = effect(method as AnyFunction, options as EffectOptions<never[]>)
    Object.defineProperty(target, name, { value, configurable: true, enumerable: true, writable: true })
  }
  return target
}
