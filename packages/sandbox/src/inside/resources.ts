// The resources of one isolate: opened in order before its first task, closed in reverse at its end.
/** How one resource is opened and closed; a resources module's default export is a record of these. */
export interface IsolateResourceOpener<T = unknown> {
  open(): T | Promise<T>
  close?(value: T): void | Promise<void>
}

export interface InnerResources {
  readonly values: object
  /** Never rejects: a resource that does not close is logged, and the others are closed all the same. */
  close(): Promise<void>
}

/** When one does not open, those before it are closed again and the error is thrown. */
export async function openResources(
  module: string | undefined,
  warn: (fields: object, message: string) => void,
): Promise<InnerResources> {
  const values: Record<string, unknown> = {}
  const closers: { readonly name: string; readonly close: () => unknown }[] = []
  const close = async (): Promise<void> => {
    for (const { name, close: closeOne } of closers.splice(0).reverse()) {
      try {
        await closeOne()
      } catch (err) {
        warn({ err, resource: name }, 'a resource did not close')
      }
    }
  }
  try {
    for (const [name, opener] of Object.entries(await openersIn(module))) {
      const value = await opener.open()
      values[name] = value
      closers.push({ name, close: () => opener.close?.(value) })
    }
  } catch (error) {
    await close()
    throw error
  }
  return { values, close }
}

async function openersIn(module: string | undefined): Promise<Record<string, IsolateResourceOpener>> {
  if (module === undefined) return {}
  const { default: openers } = await import(module)
  if (typeof openers === 'object' && openers !== null) return openers
  throw new TypeError(`${module} exports no resources; its default export is a record of { open, close }`)
}
