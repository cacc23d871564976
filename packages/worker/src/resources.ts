// Resources: opened before the first fetch, in order; closed after the drain, in reverse.
import type { Log, Resources } from '@bullpen/contract'

/** How one resource is opened and closed. */
export interface ResourceOpener<T> {
  open(): T | Promise<T>
  close?(value: T): void | Promise<void>
}

/** One opener for each resource that handlers use. */
export type ResourceOpeners<R extends Resources> = { readonly [K in keyof R]: ResourceOpener<R[K]> }

export interface OpenResources<R extends Resources> {
  readonly values: R
  /** Never rejects: a resource that does not close is logged, and the others are closed all the same. */
  close(): Promise<void>
}

/** When one does not open, those before it are closed again and the error is thrown. */
export async function openResources<R extends Resources>(
  openers: ResourceOpeners<R>,
  log: Log,
): Promise<OpenResources<R>> {
  const values: Partial<R> = {}
  const closers: { name: string; close: () => void | Promise<void> }[] = []
  const close = async (): Promise<void> => {
    for (const { name, close: closeOne } of closers.splice(0).reverse()) {
      try {
        await closeOne()
      } catch (err) {
        log.error({ err, resource: name }, 'a resource did not close')
      }
    }
  }
  try {
    for (const name of Object.keys(openers) as (keyof R & string)[]) {
      const opener = openers[name]
      const value = await opener.open()
      values[name] = value
      closers.push({ name, close: () => opener.close?.(value) })
    }
  } catch (error) {
    await close()
    throw error
  }
  // Every key of the openers has been filled.
  return { values: values as R, close }
}
