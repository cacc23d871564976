// Resources: opened in order before the first task, closed in reverse order after the last.
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
  /** Closes each resource once, the newest first. Never rejects. Idempotent: every call resolves when all are closed. */
  close(): Promise<void>
}

/**
 * Opens the resources one after another. If one fails to open, those before it are closed and its error is thrown.
 * `onCloseError` receives the error of each resource that fails to close; the others are closed all the same.
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
    // Every key of the openers has been filled.
    values: values as R,
    close: () => (closing ??= stack.disposeAsync()),
  }
}
