// Reduces the inspector's call frames to the source location of the running code: one function, file and line.
import { fileURLToPath } from 'node:url'

/** The part of an inspector's call frame that is read here. The innermost frame comes first. */
export interface Frame {
  readonly functionName: string
  /** Lines are counted from 0. */
  readonly location: { readonly scriptId: string; readonly lineNumber: number }
}

const isOfNode = (url: string): boolean => url === '' || url.startsWith('node:')
const isOfLibrary = (url: string): boolean => url.includes('/node_modules/')

/**
 * Returns `name (/path/of/file.ts:7)` for the innermost frame in the program's own code, or else in a library. Returns undefined
 * if only Node's own code is running.
 */
export function locationOf(
  frames: readonly Frame[],
  urlOf: (scriptId: string) => string | undefined,
): string | undefined {
  const locations = frames
    .map(({ functionName, location }) => ({
      name: functionName,
      url: urlOf(location.scriptId) ?? '',
      line: location.lineNumber + 1,
    }))
    .filter(({ url }) => !isOfNode(url))
  const location = locations.find(({ url }) => !isOfLibrary(url)) ?? locations[0]
  if (location === undefined) return undefined
  const file = location.url.startsWith('file:') ? fileURLToPath(location.url) : location.url
  return location.name === '' ? `${file}:${location.line}` : `${location.name} (${file}:${location.line})`
}
