// Finds a free TCP port on this machine, for programs that must be given one.
const script = new URL('../../../scripts/system/ports.mjs', import.meta.url).href

export async function freePort(): Promise<number> {
  const ports = (await import(script)) as { freePort(): Promise<number> }
  return ports.freePort()
}
