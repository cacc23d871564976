// Checks whether a handler that normally runs in the worker's own thread can also run in a child process.
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The part of a handler that is looked at. */
interface InlineHandler {
  readonly module: string
}

export interface ProcessFitOptions {
  /** The names of the resources that the worker opens for its own thread. */
  readonly resources: readonly string[]
  /** The URL of the module whose resources are opened in each child process. */
  readonly isolatedResources: string | undefined
  /** The path of the program. Defaults to that of this process. */
  readonly program?: string | undefined
}

/**
 * Returns a function that returns whether an inline handler can run in a child process. Three conditions apply: a file exports the
 * handler, the file is not the program itself, which would start another worker, and the child process opens every resource that
 * the worker opens. The worker has already imported the file to get its handler, so importing the file here runs nothing.
 */
export function processFit({
  resources,
  isolatedResources,
  program = process.argv[1],
}: ProcessFitOptions): (handler: InlineHandler) => Promise<boolean> {
  let opensAll: Promise<boolean> | undefined
  return async (handler) => {
    if (!handler.module.startsWith('file:') || isProgram(handler.module, program)) return false
    opensAll ??= hasAll(resources, isolatedResources)
    return (await opensAll) && (await exportsHandler(handler))
  }
}

function isProgram(module: string, program: string | undefined): boolean {
  if (program === undefined) return false
  try {
    return realpathSync(fileURLToPath(module)) === realpathSync(program)
  } catch {
    return true // the file is gone, so a child process could not import it either
  }
}

async function exportsHandler(handler: InlineHandler): Promise<boolean> {
  const exports = await importOf(handler.module)
  return Object.values(exports).includes(handler)
}

async function hasAll(resources: readonly string[], isolatedResources: string | undefined): Promise<boolean> {
  if (resources.length === 0) return true
  const { default: openers } = isolatedResources === undefined ? {} : await importOf(isolatedResources)
  return typeof openers === 'object' && openers !== null && resources.every((name) => name in openers)
}

async function importOf(module: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await import(module)
  } catch {
    return {}
  }
}
