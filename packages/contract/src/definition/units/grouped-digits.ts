// Writes a whole number as people read it in messages: 12,000.

/**
 * Groups the digits of a whole number like `toLocaleString('en')`, which is unsuitable for code that runs while modules are loaded:
 * its first call takes 10 ms, because it loads Node's data of all locales.
 */
export function groupedDigits(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',')
}
