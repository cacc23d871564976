// Opens resources in order before the first task and closes them in reverse order after the last one.
import type { Resources } from '@bullpen/contract'

/** How one resource is opened and closed. */
export interface ResourceOpener<T = unknown> {
  open(): T | Promise<T>
  close?(value: T): void | Promise<void>
}

/** One opener for each resource that handlers use. */
export type ResourceOpeners<R extends Resources> = { readonly [K in keyof R]: ResourceOpener<R[K]> }

export interface OpenResources<R extends Resources> {
  readonly values: R
  /** Closes each resource once, in reverse order. Never rejects. If called again, resolves once all resources are closed. */
  close(): Promise<void>
}

/**
 * Opens the resources one after another. If one of them fails to open, the resources opened before it are closed and its error is
 * thrown. If a resource fails to close, `onCloseError` receives its error, and the remaining resources are still closed.
 */
export async function openResources<R extends Resources>(
  openers: ResourceOpeners<R>,
  onCloseError: (error: unknown, resource: string) => void,
): Promise<OpenResources<R>> {
  await using opened = new AsyncDisposableStack()
  const values: Partial<R> = {}
  for (const name of Object.keys(openers) as (keyof R & string)[]) {
    const opener = openers[name]
    const value = await opener.open()
    values[name] = value
    opened.defer(async () => {
      try {
        await opener.close?.(value)
      } catch (error) {
        onCloseError(error, name)
      }
    })
  }
  const stack = opened.move()
  let closing: Promise<void> | undefined
  return {
    // Every opener has now stored its resource in this object.
    values: values as R,
    close: () => (closing ??= stack.disposeAsync()),
  }
}
