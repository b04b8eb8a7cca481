#!/bin/sh
# ccache.sh COMPILER OPTION...: compiles through ccache. A precompiled header from before is removed first: the compiler would read it while it makes the new one,
# so that the cache's key depended on it and no other checkout hit.
for word do
  case $word in *.gch) rm -f -- "$word" ;; esac
done
exec ccache "$@"
