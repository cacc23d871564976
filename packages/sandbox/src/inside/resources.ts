// Opens an isolate's resources, which come from the module that the worker specifies. They are opened before the isolate's first
// task and closed when the isolate ends.
import { type OpenResources, openResources, type ResourceOpener } from '@bullpen/engine/isolate'

/** Opens the resources. If one of them fails to open, those opened before it are closed and its error is thrown. */
export async function openModuleResources(
  module: string | undefined,
  onCloseError: (error: unknown, resource: string) => void,
): Promise<OpenResources<Record<string, unknown>>> {
  return openResources(await openersIn(module), onCloseError)
}

async function openersIn(module: string | undefined): Promise<Record<string, ResourceOpener>> {
  if (module === undefined) return {}
  const { default: openers } = await import(module)
  if (typeof openers === 'object' && openers !== null) return openers
  throw new TypeError(`${module} does not export resources; its default export must be a record of { open, close }`)
}
