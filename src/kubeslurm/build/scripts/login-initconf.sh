#!/bin/sh
# Copies the mounted files to where sackd reads them.
# Secrets are mounted for root; sackd runs as Slurm's user (401) and refuses a key that it does not own.
set -eu
for file in /mnt/slurm/*.conf /mnt/slurm/*.key; do
  [ -e "$file" ] || continue
  copy=/mnt/etc/slurm/${file##*/}
  cp -L "$file" "$copy"
  chown 401:401 "$copy"
  case $copy in *.key) chmod 600 "$copy" ;; *) chmod 644 "$copy" ;; esac
done
ls -l /mnt/etc/slurm
